/* An encoder's attention: all queries of a sentence ask about the same keys.
 *
 * The queries of a head go through each stage together: scores, their exponentials, sums of
 * values. In the first and the last a few of them share what is loaded of keys and values, while
 * the sums stay in registers. How many come together changes no sum's order.
 */
#include "attention.h"
#include "softmax.h"

/* Queries, keys and vectors of values whose sums fit in registers. */
#define QUERIES 4
#define KEYS 8
#define VECTORS 2

/* Queries whose scores, at most ROOM, are kept at a time. */
#define MAX_ROWS 64
#define ROOM (QUERIES * (MAX_KEYS + WIDTH))
#define MAX_HEAD_SIZE 128

/* One head of one sentence. */
typedef struct {
  const float *queries, *keys, *values; /* (K,) each */
  size_t stride;                        /* from one to the next, of all three */
  size_t num_queries, num_keys;
  uint8_t *context; /* (K,) each */
  size_t context_stride;
  Quantizer quantizer;
} Head;

/* Some of its queries. */
typedef struct {
  size_t first, count;
  float *scores; /* of each query in a row */
  size_t stride; /* from one row to the next */
  float *factors;
} Rows;

/* Two features of each of KEYS keys. */
typedef int64_t Pairs __attribute__((vector_size(4 * WIDTH)));

INLINE Pairs zip_lower(Pairs a, Pairs b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}

INLINE Pairs zip_upper(Pairs a, Pairs b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

/* From rows to columns: as often shuffled like a pack of cards as there are bits in their number. */
INLINE void transpose(Pairs rows[KEYS]) {
#pragma GCC unroll 3
  for (size_t round = 1; round < KEYS; round *= 2) {
    Pairs shuffled[KEYS];
#pragma GCC unroll 4
    for (size_t i = 0; i < KEYS / 2; i++) {
      shuffled[2 * i] = zip_lower(rows[i], rows[i + KEYS / 2]);
      shuffled[2 * i + 1] = zip_upper(rows[i], rows[i + KEYS / 2]);
    }
    memcpy(rows, shuffled, sizeof shuffled);
  }
}

/* KEYS keys from `start`; where there are fewer, the last one again. */
INLINE void pack_keys(const Head *h, size_t start, size_t head_size, Pairs *packed) {
  const float *keys[KEYS];
  for (size_t i = 0; i < KEYS; i++)
    keys[i] = h->keys + smaller_size(start + i, h->num_keys - 1) * h->stride;
  for (size_t feature = 0; feature < head_size; feature += WIDTH) {
    Pairs rows[KEYS];
#pragma GCC unroll 8
    for (size_t i = 0; i < KEYS; i++) memcpy(&rows[i], keys[i] + feature, sizeof rows[i]);
    transpose(rows);
    memcpy(packed + feature / 2, rows, sizeof rows);
  }
}

INLINE Floats repeat_pair(const float *from) {
  int64_t pair;
  memcpy(&pair, from, sizeof pair);
  return (Floats)((Pairs){0} + pair);
}

/* From the terms of two queries their scores: features of a pair lie side by side. */
INLINE void write_scores(Floats a, Floats b, float *scores, size_t stride) {
  Floats both = add_neighbours(a, b);
  Floats8 lower = lower_half(both), upper = upper_half(both);
  memcpy(scores, &lower, sizeof lower);
  memcpy(scores + stride, &upper, sizeof upper);
}

/* The scores of QUERIES queries for KEYS keys; the last query again where there are fewer. */
INLINE void score_few(const Head *h, size_t query, const Pairs *packed, size_t head_size,
                      float *scores, size_t stride) {
  const float *queries[QUERIES];
  Floats terms[QUERIES] = {0};
#pragma GCC unroll 4
  for (size_t i = 0; i < QUERIES; i++)
    queries[i] = h->queries + smaller_size(query + i, h->num_queries - 1) * h->stride;
#pragma GCC unroll 4
  for (size_t pair = 0; pair < head_size / 2; pair++)
#pragma GCC unroll 4
    for (size_t i = 0; i < QUERIES; i++)
      terms[i] += repeat_pair(queries[i] + 2 * pair) * (Floats)packed[pair];
#pragma GCC unroll 2
  for (size_t i = 0; i < QUERIES; i += 2)
    write_scores(terms[i], terms[i + 1], scores + i * stride, stride);
}

INLINE void score_of(const Head *h, const Rows *r, size_t head_size) {
  Pairs packed[MAX_HEAD_SIZE / 2];
  for (size_t start = 0; start < h->num_keys; start += KEYS) {
    pack_keys(h, start, head_size, packed);
    for (size_t i = 0; i < r->count; i += QUERIES)
      score_few(h, r->first + i, packed, head_size, r->scores + i * r->stride + start, r->stride);
  }
}

static AVX512 void score(const Head *h, const Rows *r, size_t head_size) {
  switch (head_size) {
    case 32: score_of(h, r, 32); break;
    case 64: score_of(h, r, 64); break;
    case 128: score_of(h, r, 128); break;
  }
}

static AVX512 void exponentiate_rows(const Head *h, const Rows *r, float scale) {
  size_t start = r->stride - WIDTH;
  for (size_t i = 0; i < r->count; i++) {
    float *last = r->scores + i * r->stride + start;
    store(last, keep(load(last, WIDTH), h->num_keys - start, -INFINITY), WIDTH);
  }
  for (size_t i = 0; i < r->count; i++)
    r->factors[i] = exponentiate(r->scores + i * r->stride, h->num_keys, scale);
}

/* Values times the powers of up to QUERIES queries from row `row`: VECTORS vectors of features. */
INLINE void mix_few(const Head *h, const Rows *r, size_t row, size_t feature) {
  Floats totals[QUERIES][VECTORS] = {0};
  const float *powers = r->scores + row * r->stride, *value = h->values + feature;
  for (size_t place = 0; place < h->num_keys; place++, value += h->stride)
#pragma GCC unroll 4
    for (size_t i = 0; i < QUERIES; i++)
#pragma GCC unroll 2
      for (size_t v = 0; v < VECTORS; v++)
        totals[i][v] += powers[i * r->stride + place] * load(value + v * WIDTH, WIDTH);
  uint8_t *context = h->context + (r->first + row) * h->context_stride + feature;
#pragma GCC unroll 4
  for (size_t i = 0; i < QUERIES; i++, context += h->context_stride) {
    if (row + i == r->count) break;
#pragma GCC unroll 2
    for (size_t v = 0; v < VECTORS; v++)
      store_bytes(context + v * WIDTH, quantize(totals[i][v] * r->factors[row + i], h->quantizer),
                  WIDTH);
  }
}

static AVX512 void mix(const Head *h, const Rows *r, size_t head_size) {
  for (size_t row = 0; row < r->count; row += QUERIES)
    for (size_t feature = 0; feature < head_size; feature += VECTORS * WIDTH)
      mix_few(h, r, row, feature);
}

static void attend(const Head *h, size_t head_size) {
  float scores[ROOM], factors[MAX_ROWS];
  size_t stride = (h->num_keys + WIDTH - 1) / WIDTH * WIDTH;
  size_t capacity = smaller_size(ROOM / stride / QUERIES * QUERIES, MAX_ROWS);
  for (size_t first = 0; first < h->num_queries; first += capacity) {
    size_t count = smaller_size(h->num_queries - first, capacity);
    Rows rows = {first, count, scores, stride, factors};
    score(h, &rows, head_size);
    exponentiate_rows(h, &rows, 1.0f / sqrtf((float)head_size));
    mix(h, &rows, head_size);
  }
}

/* All heads of one sentence. */
static void attend_in_blocks(const SelfAttention *a) {
  size_t size = a->head_size, num_features = a->num_heads * size;
  for (size_t head = 0; head < a->num_heads; head++) {
    const float *from = a->qkv + head * size;
    Head one = {
        .queries = from,
        .keys = from + num_features,
        .values = from + 2 * num_features,
        .stride = 3 * num_features,
        .num_queries = a->num_places,
        .num_keys = *a->lengths,
        .context = a->context + head * size,
        .context_stride = num_features,
        .quantizer = a->quantizer,
    };
    attend(&one, size);
  }
}

/* Whether blocks can be used, and pay: a short sentence would fill them with padding. */
static bool fills_blocks(const SelfAttention *a) {
  size_t size = a->head_size;
  return (size == 32 || size == 64 || size == 128) && *a->lengths > 2 * KEYS;
}

void attend_self(const SelfAttention *a) {
  size_t numbers = a->num_places * a->num_heads * a->head_size;
  for (size_t sentence = 0; sentence < a->num_sentences; sentence++) {
    SelfAttention one = *a;
    one.num_sentences = 1;
    one.qkv += sentence * 3 * numbers;
    one.lengths += sentence;
    one.context += sentence * numbers;
    if (fills_blocks(&one))
      attend_in_blocks(&one);
    else
      attend_self_singly(&one);
  }
}
