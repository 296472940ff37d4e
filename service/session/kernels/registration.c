/* What onnxruntime knows of the operators: names, attributes, the types of inputs and outputs. It
 * looks for RegisterCustomOps in a library, and learns of them by it. */
#include <stdatomic.h>
#include <stdlib.h>

#include "operators.h"

#define OPERATOR_DOMAIN "nmt"
#define MAX_PORTS 7

/* An input or output. */
typedef struct {
  ONNXTensorElementDataType type;
  bool optional;
} Port;

typedef struct {
  OrtCustomOp callbacks; /* first: onnxruntime hands back its address */
  const char *name;
  bool has_heads, has_epsilon; /* which attributes a node has to have */
  size_t num_inputs, num_outputs;
  Port inputs[MAX_PORTS], outputs[MAX_PORTS];
  void (*run)(const Attributes *attributes, Call *call);
} Operator;

/* A node of a graph. */
typedef struct {
  const OrtApi *api;
  const Operator *operator;
  Attributes attributes;
  Tensor constants[MAX_PORTS];
} Node;

static const Operator *operator_of(const OrtCustomOp *callbacks) {
  return (const Operator *)callbacks;
}

static const char *name_of(const OrtCustomOp *op) { return operator_of(op)->name; }

static const char *provider_of(const OrtCustomOp *op) {
  (void)op;
  return NULL; /* the CPU's */
}

static size_t num_inputs_of(const OrtCustomOp *op) { return operator_of(op)->num_inputs; }

static size_t num_outputs_of(const OrtCustomOp *op) { return operator_of(op)->num_outputs; }

static ONNXTensorElementDataType input_type_of(const OrtCustomOp *op, size_t index) {
  return operator_of(op)->inputs[index].type;
}

static ONNXTensorElementDataType output_type_of(const OrtCustomOp *op, size_t index) {
  return operator_of(op)->outputs[index].type;
}

static OrtCustomOpInputOutputCharacteristic kind_of(Port port) {
  return port.optional ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
}

static OrtCustomOpInputOutputCharacteristic input_kind_of(const OrtCustomOp *op, size_t index) {
  return kind_of(operator_of(op)->inputs[index]);
}

static OrtCustomOpInputOutputCharacteristic output_kind_of(const OrtCustomOp *op, size_t index) {
  return kind_of(operator_of(op)->outputs[index]);
}

static OrtMemType memory_of(const OrtCustomOp *op, size_t index) {
  (void)op, (void)index;
  return OrtMemTypeDefault;
}

static OrtStatus *read_attributes(const OrtApi *api, const OrtKernelInfo *info,
                                  const Operator *operator, Attributes *attributes) {
  OrtStatus *status = NULL;
  if (operator->has_heads)
    status = api->KernelInfoGetAttribute_int64(info, "num_heads", &attributes->num_heads);
  if (status == NULL && operator->has_epsilon)
    status = api->KernelInfoGetAttribute_float(info, "epsilon", &attributes->epsilon);
  return status;
}

static OrtStatus *prepare_node(const OrtKernelInfo *info, Node *node) {
  const Operator *operator = node->operator;
  Call call = {.api = node->api, .operator_name = operator->name};
  call.status = read_attributes(node->api, info, operator, &node->attributes);
  if (operator->has_heads)
    expect_number(&call, "num_heads", node->attributes.num_heads, 1, INT16_MAX);
  for (size_t i = 0; i < operator->num_inputs; i++)
    node->constants[i] = read_constant(&call, info, i);
  return call.status;
}

static OrtStatus *create_node(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info,
                              void **created) {
  Node *node = calloc(1, sizeof *node);
  if (node == NULL) return api->CreateStatus(ORT_FAIL, "no memory for a node");
  node->api = api;
  node->operator = operator_of(op);
  OrtStatus *status = prepare_node(info, node);
  if (status == NULL)
    *created = node;
  else
    free(node);
  return status;
}

static void destroy_node(void *node) { free(node); }

static OrtStatus *run_node(void *created, OrtKernelContext *context) {
  const Node *node = created;
  Call call = {
      .api = node->api,
      .operator_name = node->operator->name,
      .constants = node->constants,
      .context = context,
  };
  node->operator->run(&node->attributes, &call);
  return call.status;
}

#define CALLBACKS                                \
  {                                              \
      .version = ORT_API_VERSION,                \
      .GetName = name_of,                        \
      .GetExecutionProviderType = provider_of,   \
      .GetInputType = input_type_of,             \
      .GetInputTypeCount = num_inputs_of,        \
      .GetInputCharacteristic = input_kind_of,   \
      .GetInputMemoryType = memory_of,           \
      .GetOutputType = output_type_of,           \
      .GetOutputTypeCount = num_outputs_of,      \
      .GetOutputCharacteristic = output_kind_of, \
      .CreateKernelV2 = create_node,             \
      .KernelComputeV2 = run_node,               \
      .KernelDestroy = destroy_node,             \
  }

#define FLOAT {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, false}
#define FLOAT_OR_NONE {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, true}
#define INT32 {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, false}
#define INT32_OR_NONE {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, true}
#define INT64 {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, false}
#define UINT8 {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, false}

static const Operator OPERATORS[] = {
    {
        .callbacks = CALLBACKS,
        .name = "CrossAttention",
        .has_heads = true,
        .num_inputs = 6,
        .inputs = {FLOAT, FLOAT, FLOAT, INT32, FLOAT, UINT8},
        .num_outputs = 2,
        .outputs = {UINT8, FLOAT_OR_NONE},
        .run = run_cross_attention,
    },
    {
        .callbacks = CALLBACKS,
        .name = "CachedSelfAttention",
        .has_heads = true,
        .num_inputs = 6,
        .inputs = {FLOAT, FLOAT, FLOAT, INT32, FLOAT, UINT8},
        .num_outputs = 3,
        .outputs = {UINT8, FLOAT, FLOAT},
        .run = run_cached_self_attention,
    },
    {
        .callbacks = CALLBACKS,
        .name = "SelfAttention",
        .has_heads = true,
        .num_inputs = 4,
        .inputs = {FLOAT, INT32, FLOAT, UINT8},
        .num_outputs = 1,
        .outputs = {UINT8},
        .run = run_self_attention,
    },
    {
        .callbacks = CALLBACKS,
        .name = "AddNormQuantize",
        .has_epsilon = true,
        .num_inputs = 6,
        .inputs = {FLOAT, FLOAT, FLOAT, FLOAT, FLOAT, UINT8},
        .num_outputs = 2,
        .outputs = {FLOAT_OR_NONE, UINT8},
        .run = run_add_norm_quantize,
    },
    {
        .callbacks = CALLBACKS,
        .name = "ListCandidates",
        .num_inputs = 5,
        .inputs = {FLOAT, INT32, FLOAT, FLOAT, INT64},
        .num_outputs = 2,
        .outputs = {FLOAT, INT64},
        .run = run_list_candidates,
    },
    {
        .callbacks = CALLBACKS,
        .name = "EmbedQuantize",
        .num_inputs = 7,
        .inputs = {UINT8, FLOAT, FLOAT, INT64, FLOAT, UINT8, INT32_OR_NONE},
        .num_outputs = 2,
        .outputs = {FLOAT, UINT8},
        .run = run_embed_quantize,
    },
    {
        .callbacks = CALLBACKS,
        .name = "SplitHeads",
        .has_heads = true,
        .num_inputs = 1,
        .inputs = {FLOAT},
        .num_outputs = 2,
        .outputs = {FLOAT, FLOAT},
        .run = run_split_heads,
    },
};

static OrtStatus *create_domain(const OrtApi *api, OrtCustomOpDomain **domain) {
  OrtStatus *status = api->CreateCustomOpDomain(OPERATOR_DOMAIN, domain);
  for (size_t i = 0; status == NULL && i < sizeof OPERATORS / sizeof *OPERATORS; i++)
    status = api->CustomOpDomain_Add(*domain, &OPERATORS[i].callbacks);
  return status;
}

static bool has_avx512(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

/* Sessions refer to the domain for as long as they live: one is made for all, and kept. */
static _Atomic(OrtCustomOpDomain *) shared_domain;

__attribute__((visibility("default"))) OrtStatus *RegisterCustomOps(OrtSessionOptions *options,
                                                                    const OrtApiBase *base) {
  const OrtApi *api = base->GetApi(ORT_API_VERSION);
  /* A runtime older than the header: there is no way to tell it so, but it won't know the nodes. */
  if (api == NULL) return NULL;
  if (!has_avx512())
    return api->CreateStatus(ORT_NOT_IMPLEMENTED,
                             "the processor has no AVX-512, without which onnxruntime's own "
                             "operators are faster");
  OrtCustomOpDomain *domain = atomic_load(&shared_domain);
  if (domain == NULL) {
    OrtCustomOpDomain *created = NULL;
    OrtStatus *status = create_domain(api, &created);
    if (status != NULL) return status;
    if (atomic_compare_exchange_strong(&shared_domain, &domain, created))
      domain = created;
    else /* another thread was faster */
      api->ReleaseCustomOpDomain(created);
  }
  return api->AddCustomOpDomain(options, domain);
}
