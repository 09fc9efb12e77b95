/* Functions that are called, not copied into their callers: compilers take longer over them than over most kernels. A source that stands
   alone has them in it; one that is compiled with ST_LINKED declares them, and is linked with st_called.c, which is compiled once. */
#ifndef ST_CALLED_H
#define ST_CALLED_H

#if defined(ST_LINKED) || defined(ST_DEFINED)
#define ST_CALLED __attribute__((visibility("hidden")))
#else
#define ST_CALLED __attribute__((noinline, unused)) static
#endif

#endif
