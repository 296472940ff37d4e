#include "normalization.h"

/* One row of a + b. It is added up anew in each pass: that is cheaper than a place to keep it. */
typedef struct {
  const float *a, *b;
  size_t size;
} Row;

/* Sixteen numbers of the row less `mean`; zeros behind its end. */
INLINE Floats deviations(const Row *row, size_t start, float mean) {
  size_t width = width_at(start, row->size);
  Floats all = load(row->a + start, width) + load(row->b + start, width) - mean;
  return width == WIDTH ? all : load((const float *)&all, width);
}

INLINE float mean_of(const Row *row) {
  Floats total = {0};
  for (size_t start = 0; start < row->size; start += WIDTH) total += deviations(row, start, 0.0f);
  return sum(total) / (float)row->size;
}

/* The biased variance. */
INLINE float variance_of(const Row *row, float mean) {
  Floats total = {0};
  for (size_t start = 0; start < row->size; start += WIDTH) {
    Floats deviation = deviations(row, start, mean);
    total += deviation * deviation;
  }
  return sum(total) / (float)row->size;
}

static AVX512 void normalize(const AddNorm *norm, size_t index) {
  size_t offset = index * norm->size;
  Row row = {norm->a + offset, norm->b + offset, norm->size};
  float mean = mean_of(&row);
  float factor = 1.0f / sqrtf(variance_of(&row, mean) + norm->epsilon);
  for (size_t start = 0; start < row.size; start += WIDTH) {
    size_t width = width_at(start, row.size);
    Floats normalized = deviations(&row, start, mean) * factor * load(norm->gamma + start, width) +
                        load(norm->beta + start, width);
    if (norm->normalized != NULL) store(norm->normalized + offset + start, normalized, width);
    store_bytes(norm->quantized + offset + start, quantize(normalized, norm->quantizer), width);
  }
}

void add_norm(const AddNorm *norm) {
  for (size_t row = 0; row < norm->num_rows; row++) normalize(norm, row);
}
