/* encoding_u16.h - two bytes for each cell (encoding_plain.h). One list reaches every cell of a run. */
enum { ENCODING_CELLS_MAX = RUN_CELLS_MAX, ENCODING_BITS = 16 };
#define ENCODING_NAME "u16"

typedef uint16_t plain_t;

#include "run/encoding_plain.h"
