/* One call of an operator by onnxruntime: its inputs and outputs, read and checked.
 *
 * The first failure is kept in `status` and ends the call: after it, everything here does nothing
 * and gives zeros. Types and the number of inputs need no check, as onnxruntime refuses a graph in
 * which they differ from the operator's table.
 */
#ifndef NMT_CALL_H
#define NMT_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "third_party/onnxruntime_c_api.h"
#include "vector.h"

#define MAX_RANK 8
#define ANY (-1) /* a size that a check leaves open */

typedef struct {
  void *data;
  size_t rank;
  int64_t shape[MAX_RANK];
} Tensor;

typedef struct {
  const OrtApi *api;
  const char *operator_name;
  const Tensor *constants; /* by input; without data where an input is none */
  OrtKernelContext *context;
  OrtStatus *status; /* NULL: no failure */
} Call;

/* What an input is called in errors, and the sizes that it has to have. */
typedef struct {
  const char *name;
  size_t rank;
  int64_t shape[MAX_RANK];
} Expected;

/* An input that the graph fixes, which is read once for all calls: asking for a shape takes longer
 * than some kernels on a single row. Without data where the input is none. */
Tensor read_constant(Call *call, const OrtKernelInfo *info, size_t index);

/* Without data where an optional input is left out. */
Tensor read_input(Call *call, size_t index);

/* Fails where the shape is another one. */
Tensor read_expected(Call *call, size_t index, Expected expected);

/* The same, but the input may be left out. */
Tensor read_optional(Call *call, size_t index, Expected expected);

/* The scale at `index` and the zero point after it. */
Quantizer read_quantizer(Call *call, size_t index);

/* Fails where a number is outside `lowest` to `highest`. */
void expect_number(Call *call, const char *name, int64_t value, int64_t lowest, int64_t highest);

/* The same for each of a vector of int32. */
void expect_numbers(Call *call, const char *name, const Tensor *values, int64_t lowest,
                    int64_t highest);

/* Fails where a number of a matrix of int64 is outside 0 to `count` - 1. */
void expect_indices(Call *call, const char *name, const Tensor *values, int64_t count);

/* An output's memory; NULL where it is optional and the graph does not name it. */
void *write_output(Call *call, size_t index, size_t rank, const int64_t *shape);

void fail(Call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
