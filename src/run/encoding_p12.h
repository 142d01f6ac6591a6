/* encoding_p12.h - five marks of 12 bits in a 64-bit word: 1.6 bytes a cell (encoding_packed.h). A list reaches 4092
 * cells, and that is the most of a run. */
enum { ENCODING_CELLS_MAX = 4092, ENCODING_BITS = 12, ENCODING_FIELDS = 5 };
#define ENCODING_NAME "p12"

#include "run/encoding_packed.h"
