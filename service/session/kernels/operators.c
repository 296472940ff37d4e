#include "operators.h"

#include <inttypes.h>

#include "attention.h"
#include "candidates.h"
#include "embedding.h"
#include "heads.h"
#include "normalization.h"

/* K, of `parts` times H * K features. */
static int64_t head_size_of(Call *call, const char *name, int64_t size, int64_t parts,
                            int64_t heads) {
  if (size < parts * heads || size % (parts * heads) != 0)
    fail(call, "%s has %" PRId64 " features, not a multiple of %" PRId64, name, size,
         parts * heads);
  return size / (parts * heads);
}

void run_cross_attention(const Attributes *attributes, Call *call) {
  int64_t heads = attributes->num_heads;
  Tensor query = read_expected(call, 0, (Expected){"query", 3, {ANY, ANY, ANY}});
  int64_t sentences = query.shape[0], queries = query.shape[1];
  int64_t size = head_size_of(call, "query", query.shape[2], 1, heads);
  Tensor key = read_expected(call, 1, (Expected){"key", 4, {sentences, heads, ANY, size}});
  int64_t places = key.shape[2];
  expect_number(call, "the number of places", places, 0, MAX_KEYS);
  Tensor value = read_expected(call, 2, (Expected){"value", 4, {sentences, heads, places, size}});
  Tensor lengths = read_expected(call, 3, (Expected){"lengths", 1, {sentences}});
  expect_numbers(call, "lengths", &lengths, 1, places);
  Quantizer quantizer = read_quantizer(call, 4);
  void *context = write_output(call, 0, 3, query.shape);
  void *weights = write_output(call, 1, 3, (int64_t[]){sentences * queries, heads, places});
  if (call->status != NULL) return;
  attend_source(&(CrossAttention){
      .num_sentences = sentences,
      .num_queries = queries,
      .num_heads = heads,
      .num_places = places,
      .head_size = size,
      .query = query.data,
      .key = key.data,
      .value = value.data,
      .lengths = lengths.data,
      .quantizer = quantizer,
      .context = context,
      .weights = weights,
  });
}

/* The output at `index`, which starts as the past: in its memory where the caller bound it so. */
static float *continue_past(Call *call, size_t index, const Tensor *past) {
  float *next = write_output(call, index, past->rank, past->shape);
  if (call->status != NULL || next == past->data) return next;
  size_t count = 1;
  for (size_t i = 0; i < past->rank; i++) count *= past->shape[i];
  memcpy(next, past->data, count * sizeof *next);
  return next;
}

void run_cached_self_attention(const Attributes *attributes, Call *call) {
  int64_t heads = attributes->num_heads;
  Tensor qkv = read_expected(call, 0, (Expected){"qkv", 3, {ANY, ANY, ANY}});
  int64_t rows = qkv.shape[0] * qkv.shape[1];
  int64_t size = head_size_of(call, "qkv", qkv.shape[2], 3, heads);
  Tensor key = read_expected(call, 1, (Expected){"past_key", 4, {rows, heads, ANY, size}});
  int64_t places = key.shape[2];
  expect_number(call, "the number of places", places, 0, MAX_KEYS);
  Tensor value = read_expected(call, 2, (Expected){"past_value", 4, {rows, heads, places, size}});
  Tensor positions = read_expected(call, 3, (Expected){"positions", 1, {rows}});
  expect_numbers(call, "positions", &positions, 0, places - 1);
  Quantizer quantizer = read_quantizer(call, 4);
  void *context =
      write_output(call, 0, 3, (int64_t[]){qkv.shape[0], qkv.shape[1], heads * size});
  float *next_key = continue_past(call, 1, &key);
  float *next_value = continue_past(call, 2, &value);
  if (call->status != NULL) return;
  attend_past(&(CachedSelfAttention){
      .num_rows = rows,
      .num_heads = heads,
      .num_places = places,
      .head_size = size,
      .qkv = qkv.data,
      .key = next_key,
      .value = next_value,
      .positions = positions.data,
      .quantizer = quantizer,
      .context = context,
  });
}

void run_self_attention(const Attributes *attributes, Call *call) {
  int64_t heads = attributes->num_heads;
  Tensor qkv = read_expected(call, 0, (Expected){"qkv", 3, {ANY, ANY, ANY}});
  int64_t sentences = qkv.shape[0], places = qkv.shape[1];
  expect_number(call, "the number of places", places, 0, MAX_KEYS);
  int64_t size = head_size_of(call, "qkv", qkv.shape[2], 3, heads);
  Tensor lengths = read_expected(call, 1, (Expected){"lengths", 1, {sentences}});
  expect_numbers(call, "lengths", &lengths, 1, places);
  Quantizer quantizer = read_quantizer(call, 2);
  void *context = write_output(call, 0, 3, (int64_t[]){sentences, places, heads * size});
  if (call->status != NULL) return;
  attend_self(&(SelfAttention){
      .num_sentences = sentences,
      .num_heads = heads,
      .num_places = places,
      .head_size = size,
      .qkv = qkv.data,
      .lengths = lengths.data,
      .quantizer = quantizer,
      .context = context,
  });
}

void run_add_norm_quantize(const Attributes *attributes, Call *call) {
  Tensor a = read_input(call, 0);
  if (a.rank < 1) fail(call, "a has no dimension, and needs at least one");
  if (call->status != NULL) return;
  int64_t size = a.shape[a.rank - 1], rows = 1;
  for (size_t i = 0; i + 1 < a.rank; i++) rows *= a.shape[i];
  Expected like_a = {"b", a.rank, {0}};
  memcpy(like_a.shape, a.shape, sizeof like_a.shape);
  Tensor b = read_expected(call, 1, like_a);
  Tensor gamma = read_expected(call, 2, (Expected){"gamma", 1, {size}});
  Tensor beta = read_expected(call, 3, (Expected){"beta", 1, {size}});
  Quantizer quantizer = read_quantizer(call, 4);
  void *normalized = write_output(call, 0, a.rank, a.shape);
  void *quantized = write_output(call, 1, a.rank, a.shape);
  if (call->status != NULL) return;
  add_norm(&(AddNorm){
      .num_rows = rows,
      .size = size,
      .a = a.data,
      .b = b.data,
      .gamma = gamma.data,
      .beta = beta.data,
      .epsilon = attributes->epsilon,
      .quantizer = quantizer,
      .normalized = normalized,
      .quantized = quantized,
  });
}

void run_list_candidates(const Attributes *attributes, Call *call) {
  (void)attributes;
  Tensor products = read_expected(call, 1, (Expected){"products", 3, {ANY, ANY, ANY}});
  int64_t sentences = products.shape[0], queries = products.shape[1], listed = products.shape[2];
  int64_t rows = sentences * queries;
  Tensor common = read_expected(call, 0, (Expected){"common", 2, {rows, ANY}});
  Tensor scales = read_expected(call, 2, (Expected){"scales", 3, {sentences, 1, listed}});
  Tensor biases = read_expected(call, 3, (Expected){"biases", 3, {sentences, 1, listed}});
  Tensor count = read_expected(call, 4, (Expected){"num_candidates", 1, {1}});
  if (call->status != NULL) return;
  int64_t chosen = *(const int64_t *)count.data;
  expect_number(call, "num_candidates", chosen, 1, common.shape[1] + listed);
  void *log_probs = write_output(call, 0, 2, (int64_t[]){rows, chosen});
  void *places = write_output(call, 1, 2, (int64_t[]){rows, chosen});
  if (call->status != NULL) return;
  list_candidates(&(ListCandidates){
      .num_sentences = sentences,
      .num_queries = queries,
      .num_common = common.shape[1],
      .num_listed = listed,
      .num_candidates = chosen,
      .common = common.data,
      .products = products.data,
      .scales = scales.data,
      .biases = biases.data,
      .log_probs = log_probs,
      .places = places,
  });
}

void run_embed_quantize(const Attributes *attributes, Call *call) {
  (void)attributes;
  Tensor table = read_expected(call, 0, (Expected){"table", 2, {ANY, ANY}});
  int64_t words = table.shape[0], size = table.shape[1];
  Tensor scales = read_expected(call, 1, (Expected){"scales", 2, {words, 1}});
  Tensor positions = read_expected(call, 2, (Expected){"positions", 2, {ANY, size}});
  Tensor tokens = read_expected(call, 3, (Expected){"tokens", 2, {ANY, ANY}});
  expect_indices(call, "tokens", &tokens, words);
  int64_t sentences = tokens.shape[0], length = tokens.shape[1];
  Quantizer quantizer = read_quantizer(call, 4);
  Tensor places = read_optional(call, 6, (Expected){"places", 1, {sentences * length}});
  if (places.data != NULL)
    expect_numbers(call, "places", &places, 0, positions.shape[0] - 1);
  else
    expect_number(call, "the number of places", length, 0, positions.shape[0]);
  int64_t shape[] = {sentences, length, size};
  void *hidden = write_output(call, 0, 3, shape);
  void *quantized = write_output(call, 1, 3, shape);
  if (call->status != NULL) return;
  embed(&(Embedding){
      .num_sentences = sentences,
      .num_tokens = length,
      .size = size,
      .table = table.data,
      .scales = scales.data,
      .positions = positions.data,
      .tokens = tokens.data,
      .places = places.data,
      .quantizer = quantizer,
      .hidden = hidden,
      .quantized = quantized,
  });
}

void run_split_heads(const Attributes *attributes, Call *call) {
  int64_t heads = attributes->num_heads;
  Tensor packed = read_expected(call, 0, (Expected){"packed", 3, {ANY, ANY, ANY}});
  int64_t sentences = packed.shape[0], places = packed.shape[1];
  int64_t size = head_size_of(call, "packed", packed.shape[2], 2, heads);
  int64_t shape[] = {sentences, heads, places, size};
  void *keys = write_output(call, 0, 4, shape);
  void *values = write_output(call, 1, 4, shape);
  if (call->status != NULL) return;
  split_heads(&(SplitHeads){
      .num_sentences = sentences,
      .num_places = places,
      .num_heads = heads,
      .head_size = size,
      .packed = packed.data,
      .keys = keys,
      .values = values,
  });
}
