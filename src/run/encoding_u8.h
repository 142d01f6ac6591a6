/* encoding_u8.h - a byte for each cell (encoding_plain.h). A list reaches 252 cells. */
enum { ENCODING_CELLS_MAX = RUN_CELLS_MAX, ENCODING_BITS = 8 };
#define ENCODING_NAME "u8"

typedef uint8_t plain_t;

#include "run/encoding_plain.h"
