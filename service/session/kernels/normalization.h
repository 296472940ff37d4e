/* Layer normalization (Ba et al. 2016) of a residual sum, quantised in the same pass. */
#ifndef NMT_NORMALIZATION_H
#define NMT_NORMALIZATION_H

#include "vector.h"

typedef struct {
  size_t num_rows, size;
  const float *a, *b;          /* (rows, size) */
  const float *gamma, *beta;   /* (size,) */
  float epsilon;
  Quantizer quantizer;
  float *normalized;           /* (rows, size), or NULL */
  uint8_t *quantized;          /* (rows, size) */
} AddNorm;

void add_norm(const AddNorm *norm);

#endif
