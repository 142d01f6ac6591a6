/* encoding_p10.h - six marks of 10 bits in a 64-bit word: 1.33 bytes a cell (encoding_packed.h). A list reaches 1020
 * cells. */
enum { ENCODING_CELLS_MAX = RUN_CELLS_MAX, ENCODING_BITS = 10, ENCODING_FIELDS = 6 };
#define ENCODING_NAME "p10"

#include "run/encoding_packed.h"
