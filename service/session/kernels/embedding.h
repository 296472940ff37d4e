/* Words at their places: rows of a table of 8-bit integers and encodings of positions, added and
 * quantised in the same pass. */
#ifndef NMT_EMBEDDING_H
#define NMT_EMBEDDING_H

#include "vector.h"

#define TABLE_ZERO_POINT 128

/* Of the W tokens of each of N sentences, out of V words. */
typedef struct {
  size_t num_sentences, num_tokens, size;
  const uint8_t *table;    /* (V, D) */
  const float *scales;     /* (V, 1): a word is (table - TABLE_ZERO_POINT) * its scale */
  const float *positions;  /* (P, D) */
  const int64_t *tokens;   /* (N, W), 0 to V - 1 */
  const int32_t *places;   /* (N * W,), 0 to P - 1; or NULL: each sentence's are 0 to W - 1 */
  Quantizer quantizer;
  float *hidden;           /* (N, W, D) */
  uint8_t *quantized;      /* (N, W, D) */
} Embedding;

void embed(const Embedding *embedding);

#endif
