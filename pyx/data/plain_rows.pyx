"""Rows of plain numbers and texts in the bytes of a file; decimals are read to the last bit, and texts are numbered.

Plain is what programs write: digits without leading zeros, in a value perhaps a sign and decimals, and texts of ASCII.
Whatever else there may be in a table (quotes, exponents, missing cells, other letters, rows of other widths) is for a
general parser.
"""

from libc.stdint cimport INT64_MAX, int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memset

from rankbench.kernels.shared.arena cimport Arena, Scratch, ints
from rankbench.kernels.shared.checks cimport agree, within

cpdef enum:
    LENGTH = 16  # bits of a text's length, beside its place

cpdef enum Field:  # what a field is that is no whole number
    VALUE = -1
    UNUSED = -2

cdef enum:
    MOST_COLUMNS = 8
    MOST_DIGITS = 19  # of a whole number, so that it fits into 64 bits
    MOST_LETTERS = 1000  # of a text
    MOST_OF_VALUE = 15  # digits of a value, so that a double holds them: then one division rounds it to the last bit

cdef double[15] POWERS = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14]

cdef struct Form:
    # How rows are written: what their fields are, the one or two letters between them, and the one before decimals.
    const int8_t *fields
    Py_ssize_t n_fields
    uint8_t[2] separator
    int letters
    uint8_t point

cdef struct Columns:
    # Where the numbers of rows go.
    (int64_t *)[MOST_COLUMNS] numbers
    double *values
    Py_ssize_t room  # rows
    const uint8_t *text
    (int64_t *)[MOST_COLUMNS] places  # of each distinct text: where it begins, and its length; NULL for numbers
    (int32_t *)[MOST_COLUMNS] table  # of hashes: one more than the number of a text
    int64_t[MOST_COLUMNS] distinct
    uint64_t mask  # one less than the entries of a table


def read(
    *, const uint8_t[::1] text, const int8_t[::1] fields, bytes separator, bytes point, numbers, double[::1] values,
    text_places,
) -> tuple[int, int, list[int]]:
    """How many rows the text has, how many fields each, and how many texts there are; no row if one is not plain.

    There is none, either, if there is no room for all. `fields` says what the first fields of a row are: a `Field`, or
    which array of `numbers` gets them. As many of these as there are `text_places` are of texts: they get the number of
    each row's text, counted as they come, and the places get where each distinct text begins, times 2^LENGTH, plus its
    length. The text must end with a line end; lines end as on Unix or Windows, and empty ones are passed over. An
    unused field may hold tabs and all printable ASCII but quotes. O(letters), one after the other: what takes most time
    are numbers whose lengths cannot be predicted.
    """
    cdef Py_ssize_t rows, width = 0, place, letters = len(separator), entries = 2
    cdef Py_ssize_t n_columns = len(numbers), n_texts = len(text_places)
    cdef Columns columns
    cdef int64_t[::1] column
    if not fields.shape[0] or not values.shape[0] or not text.shape[0] or text[text.shape[0] - 1] != c"\n":
        raise ValueError("there must be a field, room for a row, and a text that ends with a line end")
    within("columns", n_columns, 0, MOST_COLUMNS)
    for place in range(n_columns):
        column = numbers[place]
        agree("whole numbers", column.shape[0], values.shape[0])
        columns.numbers[place] = &column[0]
    columns.values, columns.room, columns.text = &values[0], values.shape[0], &text[0]
    within("columns of texts", n_texts, 0, n_columns)
    while entries < 2 * values.shape[0]:
        entries *= 2
    columns.mask = <uint64_t> entries - 1
    cdef Arena arena = Arena(NULL, 0)
    for place in range(n_texts):
        columns.table[place] = ints(&arena, entries)
    cdef Scratch scratch = Scratch(arena.used, 1)
    arena = scratch.share(0)
    for place in range(MOST_COLUMNS):
        columns.places[place], columns.distinct[place] = NULL, 0
    for place in range(n_texts):
        column = text_places[place]
        agree("places of texts", column.shape[0], values.shape[0])
        columns.places[place], columns.table[place] = &column[0], ints(&arena, entries)
        memset(columns.table[place], 0, entries * sizeof(int32_t))
    for place in range(fields.shape[0]):
        within("field", fields[place], UNUSED, n_columns - 1)
    within("letters of the separator", letters, 1, 2)
    agree("letters of the point", len(point), 1)
    if set(separator + point) & set(b"\r\n0123456789-"):
        raise ValueError("neither the separator nor the point can be a line end, a digit or a sign")
    cdef Form form = Form(&fields[0], fields.shape[0], [separator[0], separator[letters - 1]], <int> letters, point[0])
    with nogil:
        rows = _rows(&text[0], &text[0] + text.shape[0], &form, &columns, &width)
    return rows, width, [columns.distinct[place] for place in range(n_texts)]


cdef Py_ssize_t _rows(
    const uint8_t *at, const uint8_t *end, const Form *form, Columns *columns, Py_ssize_t *width
) noexcept nogil:
    """Read all rows and count the fields of each; how many rows there are, or 0 as `read` has it."""
    cdef Py_ssize_t rows = 0, found = 0
    while at < end:
        if _line_end(at):
            at += _line_end(at)
            continue
        if rows == columns.room:
            return 0
        at = _row(at, form, columns, rows, &found)
        if at == NULL or (rows and found != width[0]):
            return 0
        width[0] = found
        rows += 1
    return rows


cdef inline int _line_end(const uint8_t *at) noexcept nogil:
    """How many letters of a line end stand here; 0 if none does."""
    return 1 if at[0] == c"\n" else 2 if at[0] == c"\r" and at[1] == c"\n" else 0


cdef inline bint _separates(const uint8_t *at, const Form *form) noexcept nogil:
    """Whether a separator stands here."""
    return at[0] == form.separator[0] and (form.letters == 1 or at[1] == form.separator[1])


cdef inline const uint8_t *_row(
    const uint8_t *at, const Form *form, Columns *columns, Py_ssize_t row, Py_ssize_t *width
) noexcept nogil:
    """Read a row and count its fields; where the next line begins, or NULL if the row is not plain."""
    cdef Py_ssize_t field = 0
    cdef int8_t kind
    while True:
        kind = form.fields[field] if field < form.n_fields else UNUSED
        if kind == UNUSED:
            at = _passed_over(at, form)
        elif kind == VALUE:
            at = _value(at, form.point, &columns.values[row])
        elif columns.places[kind] == NULL:
            at = _whole_number(at, &columns.numbers[kind][row])
        else:
            at = _text(at, form, columns, kind, row)
        if at == NULL:
            return NULL
        field += 1
        if not _separates(at, form):
            break
        at += form.letters
    width[0] = field
    if field < form.n_fields or not _line_end(at):
        return NULL
    return at + _line_end(at)


cdef inline const uint8_t *_digits(const uint8_t *at, uint64_t *number) noexcept nogil:
    """Read the digits that stand here into a number, to which they are appended; what stands behind them.

    Of more than MOST_DIGITS the number is wrong.
    """
    cdef uint64_t value = number[0]
    while <uint8_t> (at[0] - c"0") <= 9:
        value = 10 * value + <uint8_t> (at[0] - c"0")
        at += 1
    number[0] = value
    return at


cdef inline const uint8_t *_whole(const uint8_t *at, uint64_t *number) noexcept nogil:
    """Read a whole number; what stands behind it, or NULL if there is none, or one with a leading zero."""
    cdef const uint8_t *start = at
    number[0] = 0
    at = _digits(at, number)
    if at == start or (start[0] == c"0" and at - start > 1):
        return NULL
    return at


cdef inline const uint8_t *_whole_number(const uint8_t *at, int64_t *number) noexcept nogil:
    """The same, with NULL if the number has more than 64 bits with its sign."""
    cdef const uint8_t *start = at
    cdef uint64_t value
    at = _whole(at, &value)
    if at == NULL or at - start > MOST_DIGITS or value > INT64_MAX:
        return NULL
    number[0] = <int64_t> value
    return at


cdef inline const uint8_t *_value(const uint8_t *at, uint8_t point, double *value) noexcept nogil:
    """Read a number with or without sign and decimals; what stands behind it, or NULL if there is none.

    Digits that make a whole number below 10^15, and a power of ten below it, are doubles exactly, and the division of
    two doubles is rounded to the last bit.
    """
    cdef bint negative = at[0] == c"-"
    cdef const uint8_t *start = at + negative
    cdef const uint8_t *behind
    cdef uint64_t number
    cdef Py_ssize_t decimals = 0
    at = _whole(start, &number)
    if at == NULL:
        return NULL
    if at[0] == point:
        behind = _digits(at + 1, &number)
        decimals = behind - at - 1
        at = behind
        if decimals == 0:
            return NULL
    if at - start - (decimals > 0) > MOST_OF_VALUE:
        return NULL
    value[0] = <double> number / POWERS[decimals]
    if negative:
        value[0] = -value[0]
    return at


cdef inline const uint8_t *_passed_over(const uint8_t *at, const Form *form) noexcept nogil:
    """Where a field that nobody has asked for ends; NULL if it holds a quote, or what `read` does not let pass."""
    while not _separates(at, form) and not _line_end(at):
        if (at[0] < 32 and at[0] != c"\t") or at[0] > 126 or at[0] == c'"':
            return NULL
        at += 1
    return at


cdef inline const uint8_t *_text(
    const uint8_t *at, const Form *form, Columns *columns, int8_t kind, Py_ssize_t row
) noexcept nogil:
    """Number the text that stands here; what stands behind it, or NULL if it is empty, too long or not plain.

    Texts are looked up in a table that is never more than half full. Entries that are taken by others are passed by.
    """
    cdef const uint8_t *start = at
    cdef uint64_t hash_ = 0, entry
    cdef int64_t place
    cdef Py_ssize_t length
    while not _separates(at, form) and not _line_end(at):
        if at[0] < 32 or at[0] > 126 or at[0] == c'"':
            return NULL
        hash_ = (hash_ ^ at[0]) * <uint64_t> 0x9E3779B97F4A7C15
        hash_ ^= hash_ >> 29
        at += 1
    length = at - start
    if length == 0 or length > MOST_LETTERS:
        return NULL
    entry = hash_ & columns.mask
    while columns.table[kind][entry]:
        place = columns.places[kind][columns.table[kind][entry] - 1]
        if place & ((1 << LENGTH) - 1) == length and not memcmp(columns.text + (place >> LENGTH), start, length):
            columns.numbers[kind][row] = columns.table[kind][entry] - 1
            return at
        entry = (entry + 1) & columns.mask
    columns.numbers[kind][row] = columns.distinct[kind]
    columns.places[kind][columns.distinct[kind]] = ((start - columns.text) << LENGTH) | length
    columns.distinct[kind] += 1
    columns.table[kind][entry] = <int32_t> columns.distinct[kind]
    return at
