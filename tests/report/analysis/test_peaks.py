"""The peak memory of each stage is measured in a run, stored with the result, and shown as a table."""

from dataclasses import replace
from mmap import PAGESIZE, mmap

from helpers import TINY, csv_rows, ran

from rankbench.planning.memory import PeakMemory
from rankbench.records.codec import decode, encode
from rankbench.records.results import STAGES, Peak, Result
from rankbench.records.store import ResultsFolder
from rankbench.report.analysis.costs import COLUMNS, peak_sheet, peaks_to_csv
from rankbench.report.study import study


def test_a_run_stores_the_peak_of_every_stage(tmp_path):
    results = ran(tmp_path, replace(TINY, repetitions=1)).study().results
    assert results
    for result in results:
        assert tuple(peak.stage for peak in result.peaks) == STAGES
        assert all(10 < peak.megabytes < 4000 for peak in result.peaks)
        assert result.peak_mb == dict((peak.stage, peak.megabytes) for peak in result.peaks)["train"]
        assert decode(Result, encode(result)) == result


def test_a_stage_that_takes_more_shows_more_and_the_next_one_less():
    memory = PeakMemory()
    memory.note("data")
    with mmap(-1, 200_000_000) as taken:  # malloc may take memory that was free, but not given back to the system
        for page in range(0, len(taken), PAGESIZE):
            taken[page] = 1
    most = memory.note("train")
    after = memory.note("evaluate")
    memory.note("train")
    assert most > after + 150
    found = {peak.stage: peak.megabytes for peak in memory.peaks}
    assert list(found) == ["data", "train", "evaluate"] and found["train"] == most


def test_the_table_has_a_line_for_each_result(cli, tmp_path):
    run = ran(tmp_path, replace(TINY, repetitions=1))
    first = run.study().results[0]
    run.keep(replace(first, peaks=(Peak("data", 812.4), Peak("train", 90.75))), {})
    found = study(ResultsFolder(tmp_path, print), "tiny")
    assert found
    (line, *others), number = peak_sheet(found).lines, len(found.results)
    assert line[5:] == ("812", "", "", "", "91", "") and len(others) == number - 1 and all(all(one) for one in others)
    written = cli("table", "tiny", "--what", "peaks", "--csv", "--out", tmp_path).out
    assert written == peaks_to_csv(found)
    table = csv_rows(written)
    assert tuple(table[0]) == COLUMNS and len(table) == number
    assert (table[0]["data_mb"], table[0]["split"], table[0]["train_mb"]) == ("812.4", TINY.splits[0], "90.75")
    shown = cli("table", "tiny", "--what", "peaks", "--out", tmp_path).out
    assert "evaluate MB" in shown and " 812 " in shown
    assert "toprule" in cli("table", "tiny", "--what", "peaks", "--latex", "--out", tmp_path).out
