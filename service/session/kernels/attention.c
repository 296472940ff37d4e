#include "attention.h"
#include "softmax.h"

/* One query of one head. */
typedef struct {
  const float *query;         /* (K,) */
  const float *keys, *values; /* num_keys of them, each (K,) */
  size_t stride;              /* from one key to the next, and from one value to the next */
  size_t num_keys, num_places;
  uint8_t *context; /* (K,) */
  float *weights;   /* (num_places,), or NULL */
} Query;

/* Queries that are taken through each stage together. Their stages don't depend on each other, so
 * that the processor works on one while another waits; and where they ask about the same keys,
 * these come from the nearest cache. */
#define GROUP 4
typedef struct {
  Query queries[GROUP];
  size_t count;
  Quantizer quantizer;
} Group;

/* The products of a query with one key, still to be summed. */
INLINE Floats products(const float *query, const float *key, size_t head_size) {
  Floats total = {0};
  for (size_t start = 0; start < head_size; start += WIDTH) {
    size_t width = width_at(start, head_size);
    total += load(query + start, width) * load(key + start, width);
  }
  return total;
}

/* The scores of up to WIDTH keys from `start`, then minus infinity: four keys at a time, with the
 * last one again where there are fewer. */
INLINE void score(const Query *q, size_t start, size_t head_size, float *scores) {
  if (start >= q->num_keys) return;
  size_t end = smaller_size(start + WIDTH, q->num_keys);
  store(scores + start, broadcast(-INFINITY), WIDTH);
  for (size_t first = start; first < end; first += 4) {
    Floats terms[4];
    for (size_t i = 0; i < 4; i++) {
      size_t place = smaller_size(first + i, end - 1);
      terms[i] = products(q->query, q->keys + place * q->stride, head_size);
    }
    Floats4 four = sums(terms[0], terms[1], terms[2], terms[3]);
    memcpy(scores + first, &four, sizeof four);
  }
  for (size_t place = end; place % 4 != 0; place++) scores[place] = -INFINITY;
}

/* Some vectors of a sum of values: few enough to stay in registers. */
#define PANEL 4
typedef struct {
  Floats vectors[PANEL];
} Panel;

/* The values, each times its power: `size` features of them from `feature`. */
INLINE Panel mix(const Query *q, const float *powers, size_t feature, size_t size) {
  Panel total = {0};
  for (size_t place = 0; place < q->num_keys; place++) {
    const float *value = q->values + place * q->stride + feature;
#pragma GCC unroll 4
    for (size_t i = 0; i < size; i += WIDTH)
      total.vectors[i / WIDTH] += powers[place] * load(value + i, width_at(i, size));
  }
  return total;
}

INLINE void write_context(const Panel *panel, float factor, size_t size, Quantizer quantizer,
                          uint8_t *context) {
#pragma GCC unroll 4
  for (size_t i = 0; i < size; i += WIDTH) {
    Floats mixed = panel->vectors[i / WIDTH] * factor;
    store_bytes(context + i, quantize(mixed, quantizer), width_at(i, size));
  }
}

static void copy_weights(const Query *q, const float *powers, float factor) {
  for (size_t place = 0; place < q->num_keys; place++) q->weights[place] = powers[place] * factor;
  for (size_t place = q->num_keys; place < q->num_places; place++) q->weights[place] = 0.0f;
}

/* Answers the queries of a group, and empties it. */
INLINE void attend_of(Group *group, size_t head_size) {
  float scores[GROUP][MAX_KEYS + WIDTH]; /* rows of a power of 2 would share their cache lines */
  float factors[GROUP];
  const Query *queries = group->queries;
  size_t count = group->count, most_keys = 0;
  for (size_t i = 0; i < count; i++)
    if (queries[i].num_keys > most_keys) most_keys = queries[i].num_keys;
  for (size_t start = 0; start < most_keys; start += WIDTH)
    for (size_t i = 0; i < count; i++) score(&queries[i], start, head_size, scores[i]);
  for (size_t i = 0; i < count; i++)
    factors[i] = exponentiate(scores[i], queries[i].num_keys, 1.0f / sqrtf((float)head_size));
  for (size_t feature = 0; feature < head_size; feature += PANEL * WIDTH) {
    size_t size = smaller_size(head_size - feature, PANEL * WIDTH);
    for (size_t i = 0; i < count; i++) {
      Panel panel = mix(&queries[i], scores[i], feature, size);
      write_context(&panel, factors[i], size, group->quantizer, queries[i].context + feature);
    }
  }
  for (size_t i = 0; i < count; i++)
    if (queries[i].weights != NULL) copy_weights(&queries[i], scores[i], factors[i]);
  group->count = 0;
}

/* The usual sizes are compiled with their loops unrolled. */
static AVX512 void attend(Group *group, size_t head_size) {
  switch (head_size) {
    case 32: attend_of(group, 32); break;
    case 64: attend_of(group, 64); break;
    case 128: attend_of(group, 128); break;
    default: attend_of(group, head_size);
  }
}

static void add(Group *group, Query query, size_t head_size) {
  group->queries[group->count++] = query;
  if (group->count == GROUP) attend(group, head_size);
}

/* The queries of a sentence one after the other, while a head's keys are in the nearest cache. */
static void add_source_head(Group *group, const CrossAttention *a, size_t sentence, size_t head) {
  size_t memory = (sentence * a->num_heads + head) * a->num_places * a->head_size;
  for (size_t i = 0; i < a->num_queries; i++) {
    size_t index = (sentence * a->num_queries + i) * a->num_heads + head;
    Query query = {
        .query = a->query + index * a->head_size,
        .keys = a->key + memory,
        .values = a->value + memory,
        .stride = a->head_size,
        .num_keys = a->lengths[sentence],
        .num_places = a->num_places,
        .context = a->context + index * a->head_size,
        .weights = a->weights == NULL ? NULL : a->weights + index * a->num_places,
    };
    add(group, query, a->head_size);
  }
}

void attend_source(const CrossAttention *a) {
  Group group = {.quantizer = a->quantizer};
  for (size_t sentence = 0; sentence < a->num_sentences; sentence++)
    for (size_t head = 0; head < a->num_heads; head++)
      add_source_head(&group, a, sentence, head);
  attend(&group, a->head_size);
}

/* Writes the row's key and value to its past first. */
static void add_past_head(Group *group, const CachedSelfAttention *a, size_t row, size_t head) {
  size_t size = a->head_size, num_features = a->num_heads * size;
  size_t memory = (row * a->num_heads + head) * a->num_places * size;
  size_t position = a->positions[row];
  const float *from = a->qkv + row * 3 * num_features + head * size;
  memcpy(a->key + memory + position * size, from + num_features, size * sizeof *from);
  memcpy(a->value + memory + position * size, from + 2 * num_features, size * sizeof *from);
  Query query = {
      .query = from,
      .keys = a->key + memory,
      .values = a->value + memory,
      .stride = size,
      .num_keys = position + 1,
      .context = a->context + row * num_features + head * size,
  };
  add(group, query, size);
}

void attend_past(const CachedSelfAttention *a) {
  Group group = {.quantizer = a->quantizer};
  for (size_t row = 0; row < a->num_rows; row++)
    for (size_t head = 0; head < a->num_heads; head++) add_past_head(&group, a, row, head);
  attend(&group, a->head_size);
}

static void add_own_head(Group *group, const SelfAttention *a, size_t sentence, size_t head) {
  size_t size = a->head_size, num_features = a->num_heads * size;
  const float *from = a->qkv + sentence * a->num_places * 3 * num_features + head * size;
  for (size_t place = 0; place < a->num_places; place++) {
    Query query = {
        .query = from + place * 3 * num_features,
        .keys = from + num_features,
        .values = from + 2 * num_features,
        .stride = 3 * num_features,
        .num_keys = a->lengths[sentence],
        .context = a->context + (sentence * a->num_places + place) * num_features + head * size,
    };
    add(group, query, size);
  }
}

void attend_self_singly(const SelfAttention *a) {
  Group group = {.quantizer = a->quantizer};
  for (size_t sentence = 0; sentence < a->num_sentences; sentence++)
    for (size_t head = 0; head < a->num_heads; head++) add_own_head(&group, a, sentence, head);
  attend(&group, a->head_size);
}
