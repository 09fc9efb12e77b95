/* cuSPARSE as far as gpu_cusparse.py calls it, on memory of the processor: compressed rows of doubles, rows of dense matrices. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int64_t rows, columns, entries;
  int32_t *pos, *crd;
  double *values;
} matrix;

int cusparseCreate(void **handle) { return *handle = malloc(1), 0; }
int cusparseCreateCsr(matrix **made, int64_t rows, int64_t columns, int64_t entries, void *pos, void *crd, void *values, int a, int b,
                      int base, int type) {
  matrix found = {rows, columns, entries, pos, crd, values};
  *made = malloc(sizeof found);
  **made = found;
  return a != 2 || b != 2 || base || type != 1;
}
int cusparseCreateDnVec(matrix **made, int64_t rows, void *values, int type) {
  return cusparseCreateCsr(made, rows, 1, rows, 0, 0, values, 2, 2, 0, type);
}
int cusparseCreateDnMat(matrix **made, int64_t rows, int64_t columns, int64_t apart, void *values, int type, int order) {
  return cusparseCreateCsr(made, rows, columns, rows * columns, 0, 0, values, 2, 2, 0, type) || apart != columns || order != 2;
}
static int multiply(double one, const matrix *a, const matrix *b, double none, matrix *c) {
  for (int64_t i = 0; i < c->rows; i++)
    for (int64_t k = 0; k < c->columns; k++) {
      double sum = 0;
      for (int64_t p = a->pos[i]; p < a->pos[i + 1]; p++) sum += a->values[p] * b->values[a->crd[p] * c->columns + k];
      c->values[i * c->columns + k] = one * sum;
    }
  return none != 0;
}
int cusparseSpMV_bufferSize(void *h, int o, double *one, matrix *a, matrix *x, double *none, matrix *y, int type, int alg, size_t *bytes) {
  return *bytes = 9, 0;
}
int cusparseSpMV_preprocess(void *h, int o, double *one, matrix *a, matrix *x, double *none, matrix *y, int type, int alg, void *room) {
  return room == 0;
}
int cusparseSpMV(void *h, int o, double *one, matrix *a, matrix *x, double *none, matrix *y, int type, int alg, void *room) {
  if (alg == 3) return 10; /* an algorithm that is not supported */
  return multiply(*one, a, x, *none, y) || o || type != 1;
}
int cusparseSpMM_bufferSize(void *h, int o, int q, double *one, matrix *a, matrix *x, double *none, matrix *y, int type, int alg,
                            size_t *bytes) {
  return *bytes = 0, 0;
}
int cusparseSpMM(void *h, int o, int q, double *one, matrix *a, matrix *x, double *none, matrix *y, int type, int alg, void *room) {
  return multiply(*one, a, x, *none, y) || o || q;
}
int cusparseSDDMM_bufferSize(void *h, int o, int q, double *one, matrix *a, matrix *b, double *none, matrix *c, int type, int alg,
                             size_t *bytes) {
  return *bytes = 5, o || q != 1;
}
int cusparseSDDMM_preprocess(void *h, int o, int q, double *one, matrix *a, matrix *b, double *none, matrix *c, int type, int alg,
                             void *room) {
  return 0;
}
int cusparseSDDMM(void *h, int o, int q, double *one, matrix *a, matrix *b, double *none, matrix *c, int type, int alg, void *room) {
  for (int64_t i = 0; i < c->rows; i++)
    for (int64_t p = c->pos[i]; p < c->pos[i + 1]; p++) {
      c->values[p] *= *none;
      for (int64_t k = 0; k < a->columns; k++)
        c->values[p] += *one * a->values[i * a->columns + k] * b->values[c->crd[p] * b->columns + k];
    }
  return 0;
}
typedef struct {
  int64_t entries;
  int32_t *crd;
  double *values;
} plan;
int cusparseSpGEMM_createDescr(plan **made) { return *made = calloc(1, sizeof(plan)), 0; }
int cusparseSpGEMM_destroyDescr(plan *made) { return free(made), 0; }
int cusparseDestroySpMat(matrix *made) { return free(made), 0; }
int cusparseSpGEMM_workEstimation(void *h, int o, int q, double *one, matrix *a, matrix *b, double *none, matrix *c, int type, int alg,
                                  plan *made, size_t *bytes, void *room) {
  if (!room) *bytes = 7;
  return 0;
}
int cusparseSpGEMM_compute(void *h, int o, int q, double *one, matrix *a, matrix *b, double *none, matrix *c, int type, int alg,
                           plan *made, size_t *bytes, void *room) {
  if (!room) return *bytes = 3, 0;
  made->crd = malloc(sizeof(int32_t) * (a->rows * b->columns + 1));
  made->values = malloc(sizeof(double) * (a->rows * b->columns + 1));
  for (int64_t i = 0; i < a->rows; i++) {
    c->pos[i] = made->entries;
    for (int64_t j = 0; j < b->columns; j++) {
      double sum = 0;
      int any = 0;
      for (int64_t p = a->pos[i]; p < a->pos[i + 1]; p++)
        for (int64_t r = b->pos[a->crd[p]]; r < b->pos[a->crd[p] + 1]; r++)
          if (b->crd[r] == j) sum += a->values[p] * b->values[r], any = 1;
      if (!any) continue;
      made->crd[made->entries] = j;
      made->values[made->entries++] = *one * sum;
    }
  }
  c->pos[a->rows] = c->entries = made->entries;
  return 0;
}
int cusparseSpMatGetSize(matrix *c, int64_t *rows, int64_t *columns, int64_t *entries) {
  return *rows = c->rows, *columns = c->columns, *entries = c->entries, 0;
}
int cusparseCsrSetPointers(matrix *c, void *pos, void *crd, void *values) { return c->crd = crd, c->values = values, c->pos != pos; }
int cusparseSpGEMM_copy(void *h, int o, int q, double *one, matrix *a, matrix *b, double *none, matrix *c, int type, int alg, plan *made) {
  memcpy(c->crd, made->crd, sizeof(int32_t) * made->entries);
  memcpy(c->values, made->values, sizeof(double) * made->entries);
  free(made->crd);
  free(made->values);
  return 0;
}
