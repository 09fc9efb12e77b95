"""What a ``build`` directive must never accept: programs, files, arithmetic that breaks NaN, and ways to hide them."""

from __future__ import annotations

COMPILERS = (
    "/usr/bin/gcc", "/tmp/evil gcc", "./gcc", "../gcc-12", "gcc -B/tmp", "gcc -wrapper /tmp/x", "cc", "c++", "sh", "nvcc", "icx", "env gcc",
    "$SPARSETUNE_CC", "${CC}", "~/gcc", "`id`", "gcc;id", "gcc\t", "gcc\n", "gcc\\", " gcc", "gcc ", "GCC", "gcc-", "gcc-0", "gcc-012",
    "gcc-123", "gcc-12.1", "gcc-12/../sh", "clang -cc1", "gcc\0", "\u0261cc", "gcc\u200b", "gcc-\u0661\u0662", "@file", "-O2", "",
    "ccache gcc", "gcc,clang", "auto gcc", "Auto", "x86_64-linux-gnu-gcc", "gcc-ar", "\udcff", "gcc" * 10_000,
)  # fmt: skip

FLAGS = (
    "-O2 /path/extra.c", "extra.c", "-wrapper /tmp/x", "-B/tmp", "-B /tmp", "@file", "-fplugin=/tmp/x.so", "-fplugin-arg-x-y=z",
    "-specs=/tmp/s", "--specs=/tmp/s", "-l", "-lm", "-L/tmp", "-o", "-o/tmp/x", "-MF/tmp/x", "-MD", "-MMD", "-fdump-tree-all",
    "-fdump-tree-all=/tmp/x", "-save-temps", "--save-temps", "-save-temps=obj", "-Ofast", "-ffast-math", "-fassociative-math",
    "-ffinite-math-only", "-funsafe-math-optimizations", "-freciprocal-math", "-fsanitize=address", "-fsanitize=undefined",
    "-fsanitize=thread", "-Wl,-rpath,/tmp", "-Wl,--wrap=malloc", "-Wa,-I/tmp", "-Wp,-include,/tmp/x", "-Xassembler", "-Xlinker",
    "-Xpreprocessor", "-Xclang", "-include /tmp/x", "-include/tmp/x", "-imacros", "-isystem/tmp", "-I/tmp", "-I", "-iquote", "-DX=1",
    "-Dmain=evil", "-UX", "-E", "-S", "-c", "-x", "-xassembler", "-pipe", "-static", "-shared", "-nostdlib", "-fuse-ld=/tmp/ld",
    "-fprofile-use=/tmp/x", "-fprofile-generate", "-fprofile-arcs", "--coverage", "-flto", "-flto=/tmp", "-gsplit-dwarf", "-aux-info",
    "-dumpdir", "-fcallgraph-info", "-fdiagnostics-format=json-file", "-fmodules", "-fload=x", "-load", "-mllvm", "--config=/tmp/c",
    "-frandom-seed=1", "-ftrapv", "-fstack-usage", "-T/tmp/script", "-print-file-name=x", "--help", "--version", "-v", "-###",
    "-O", "-O4", "-Os", "-Og", "-Oz", "-O2 -Ofast", "-O3 -O9", "-march", "-march=", "-march=foo", "-march=native -o/tmp/x",
    "-march=native,-o/tmp/x", "-march=native;id", "-march=native=native", "-march=/tmp/x", "-march=native/", "-mtune=x y", "-mcpu=@file",
    "-march=Native", "-mprefer-vector-width=1024", "-mprefer-vector-width=", "-ffp-contract", "-ffp-contract=maybe", "-ffp-contract=fast,",
    "-O2\t-o/tmp/x", "-O2\n-o/tmp/x", "-O2\r-o/tmp/x", "-O2\v-B/tmp", "-O2\f-B/tmp", "-O2\0", "-O2\\", "-O2\\ -B/tmp", "'-O2'", "'-B/tmp'",
    "-O2 '", "`id`", "$(id)", "$HOME", "%s", "-O2;id", "-O2|id", "-O2&", "-O2>x", "\u2010O2", "-O\u0662", "-O2\u00a0-B/tmp",
    "-O2\u2003-B/tmp", "-\u200bO2", "-O2\u202e", "\udcff", "O2", "-", "--", "=", "-=", "-O2 " * 40, "-B/" + "x" * 100_000,
)  # fmt: skip
