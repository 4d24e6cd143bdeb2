"""What each solver's test class promises beyond the contract, in one place.

A promise that a solver no longer keeps is a failure, and so is a gap or an end that the table does not have.
"""

from enum import Flag, auto


class Promise(Flag):
    """What a solver may promise."""

    LEARNS = auto()  # it orders what it was trained on better than chance
    DESCENDS = auto()  # its objective never rises
    GAP = auto()  # every step has a gap
    ENDS = auto()  # it ends by itself, within the steps that the contract's tests wait


LEARNS, DESCENDS, GAP, ENDS = Promise
NOTHING = Promise(0)

PROMISES = {
    "TestAltSVM": LEARNS,
    "TestAltSVMWithHingeLoss": LEARNS,
    "TestAltSVMPartitioned": LEARNS,
    "TestAltSVMHogwild": LEARNS,
    "TestAltSVMAtomic": LEARNS,
    "TestAltSVMRandom": LEARNS,
    "TestAltSVMInParts": LEARNS,
    "TestAltSVMInPartsWithHingeLoss": LEARNS,
    "TestAltSVMInPartsRandom": LEARNS,
    "TestBPR": LEARNS,
    "TestBPRAgainstPopularItems": LEARNS,
    "TestBPRByWARP": LEARNS,
    "TestBPRByWARPInSinglePrecision": NOTHING,
    "TestBPRWithBiases": LEARNS,
    "TestBPRWithBiasesInSinglePrecision": NOTHING,
    "TestBPRInSinglePrecision": NOTHING,
    "TestBPRFromEveryRating": NOTHING,  # which ratings are high is nothing to it
    "TestCofiRank": LEARNS | DESCENDS,
    "TestCofiRankOrdinal": LEARNS | DESCENDS,
    "TestCofiRankRegression": LEARNS | DESCENDS,
    "TestConvexERM": LEARNS | DESCENDS | GAP | ENDS,
    "TestConvexERMWithSquaredHinge": LEARNS | DESCENDS | GAP | ENDS,
    "TestConvexERMByProjectionsAlone": LEARNS | DESCENDS | GAP,
    "TestCornacBPR": NOTHING,  # how a user rated an item is nothing to it
    "TestCornacEASE": ENDS,  # how a user rated an item is nothing to it
    "TestCornacMF": NOTHING,  # learns slowly with its small steps
    "TestEASE": ENDS,  # how a user rated an item is nothing to it
    "TestEASEOfCentredRatings": LEARNS | ENDS,
    "TestEASEOfNeighbours": ENDS,
    "TestFM": LEARNS | DESCENDS,
    "TestFMWithoutFeatures": LEARNS | DESCENDS,
    "TestFRSVM": LEARNS | DESCENDS,
    "TestLogistic": LEARNS | DESCENDS,
    "TestWithoutFeatures": LEARNS | DESCENDS,
    "TestFRSVMInParts": LEARNS | DESCENDS,
    "TestFRSVMInPartsWithoutFeatures": LEARNS | DESCENDS,
    "TestGlobalRanking": LEARNS | DESCENDS | GAP | ENDS,
    "TestGlobalRankingWithLogisticLoss": LEARNS | DESCENDS | GAP | ENDS,
    "TestIALS": DESCENDS,  # how a user rated an item is nothing to it
    "TestIALSByConjugateGradients": DESCENDS,
    "TestIALSByBlocks": DESCENDS,
    "TestIMC": LEARNS | DESCENDS,
    "TestIMCOfPlainRatings": LEARNS | DESCENDS,
    "TestImplicitALS": NOTHING,  # how a user rated an item is nothing to it
    "TestImplicitBPR": NOTHING,  # in few steps
    "TestItemKNN": ENDS,  # how a user rated an item is nothing to it
    "TestItemKNNOfCentredRatings": LEARNS | ENDS,
    "TestSLIM": DESCENDS | GAP,  # how a user rated an item is nothing to it
    "TestSLIMOfCentredRatings": LEARNS | DESCENDS | GAP,
    "TestRP3Beta": ENDS,  # how a user rated an item is nothing to it
    "TestLCR": LEARNS | DESCENDS,
    "TestLCRWithoutAnchors": LEARNS | DESCENDS,
    "TestLIBLINEAR": LEARNS | ENDS,
    "TestLIBLINEARInTheDual": LEARNS | ENDS,
    "TestLensKitMF": LEARNS,
    "TestLightFM": NOTHING,  # how a user rated an item is nothing to it
    "TestLightGBMRanker": LEARNS,
    "TestMF": LEARNS | DESCENDS,
    "TestMFByConjugateGradients": LEARNS | DESCENDS,
    "TestMFOfPlainRatings": LEARNS | DESCENDS,
    "TestMFWithBiases": LEARNS | DESCENDS,
    "TestMFWithBiasesByConjugateGradients": LEARNS | DESCENDS,
    "TestMFWithScaledPenalties": LEARNS | DESCENDS,
    "TestMPRank": LEARNS | ENDS,
    "TestMPRankInTheDual": LEARNS | ENDS,
    "TestMPRankWithGaussianKernel": LEARNS | ENDS,
    "TestPopularity": ENDS,  # how a user rated an item is nothing to it
    "TestRandom": ENDS,
    "TestRankBoost": LEARNS | DESCENDS,
    "TestRankBoostValidated": LEARNS | DESCENDS,
    "TestRankSVMJoint": LEARNS | DESCENDS | GAP | ENDS,
    "TestRankSVMJointLogistic": LEARNS | DESCENDS | GAP | ENDS,
    "TestRankSVMSeparate": LEARNS | DESCENDS | GAP | ENDS,
    "TestRankSVMVar": LEARNS | DESCENDS | GAP | ENDS,
    "TestRankSVMNuclear": LEARNS | DESCENDS | GAP | ENDS,
    "TestRankSVMNuclearWithTheLogisticLoss": LEARNS | DESCENDS | GAP | ENDS,
    "TestRMC": LEARNS | GAP,
    "TestRMCFromComparisons": LEARNS | GAP,
    "TestRobiRank": LEARNS,
    "TestRobiRankInTheCatalogue": NOTHING,  # which ratings are high is nothing to it
    "TestSGD": LEARNS,
    "TestSGDWithLogisticLoss": LEARNS,
    "TestSGDInTournaments": LEARNS,
    "TestSGDInSinglePrecision": LEARNS,
    "TestNomadicSGD": LEARNS,
    "TestHogwildSGD": LEARNS,
    "TestSMC": LEARNS | GAP,
    "TestCentredSMC": LEARNS | GAP,
    "TestSoftmax": NOTHING,  # how a user rated an item is nothing to it
    "TestSoftmaxOfDrawnItems": NOTHING,
    "TestSoftmaxOfHighRatings": LEARNS,
    "TestSQLRank": LEARNS,
    "TestSQLRankOfScores": LEARNS,
    "TestSQLRankAmongUnrated": LEARNS,
    "TestSVRank": LEARNS | GAP | ENDS,
    "TestSVRankOverResiduals": LEARNS | GAP | ENDS,
    "TestSVRankWithGaussianKernel": LEARNS | GAP | ENDS,
    "TestSVRankWithGaussianKernelOverResiduals": LEARNS | GAP | ENDS,
    "TestXGBoostRanker": LEARNS,
}
