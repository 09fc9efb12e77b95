/* What st_called.h speaks of: an object that generated kernels are linked with. */
#define ST_DEFINED

#include "st_few.h"
#include "st_loop.h"
#include "st_pieces.h"
#include "st_runtime.h"
