/* The best words of each row, out of words common to all and of those of its sentence's own list.
 *
 * Log-probabilities are over both together. A word with a logit of -1e9 is padding: it changes no
 * bit of the others' results.
 */
#ifndef NMT_CANDIDATES_H
#define NMT_CANDIDATES_H

#include "vector.h"

/* Of C common words and L of the list, R = N * W rows. */
typedef struct {
  size_t num_sentences, num_queries, num_common, num_listed, num_candidates;
  const float *common;      /* (R, C): logits */
  const int32_t *products;  /* (N, W, L): logits are products * scales + biases */
  const float *scales;      /* (N, 1, L) */
  const float *biases;      /* (N, 1, L) */
  float *log_probs;         /* (R, candidates), descending */
  int64_t *places;          /* (R, candidates): of the C + L; of equal ones the first comes first */
} ListCandidates;

void list_candidates(const ListCandidates *candidates);

#endif
