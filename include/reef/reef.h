/* SPDX-License-Identifier: Apache-2.0
 *
 * Reef's library: load a TFLite model, plain or compiled for the Edge TPU, look into it, run it on the CPU and on Edge
 * TPUs, real and virtual; check and compile models. This header is the whole binary interface; reef.hpp wraps it for
 * C++.
 *
 * Failures: functions that can fail return a reef_status; reef_error_message() then says what and where, for the thread
 * that called. Nothing throws, and nothing prints. Strings are UTF-8, end in 0, and belong to the object they came from
 * unless a comment says otherwise.
 *
 * Threads: everything may be called from any thread. One object must be used by one thread at a time, except where it
 * says otherwise; separate interpreters are independent, also those of one model and on one device. Two threads inside
 * one interpreter is an error that is reported, not a crash.
 *
 * Growth: structures that callers fill begin with their size (the _init functions set it), those that the library fills
 * end in room for more; functions are only ever added within one major version.
 */
#ifndef REEF_REEF_H_
#define REEF_REEF_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define REEF_API
#else
#define REEF_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum reef_status {
  REEF_OK = 0,
  REEF_INVALID_INPUT = 1,      /* the bytes, model, tensor or argument cannot be processed */
  REEF_UNSUPPORTED = 2,        /* well formed, but Reef does not do this */
  REEF_NOT_FOUND = 3,          /* a file, device or name does not exist */
  REEF_IO_ERROR = 4,           /* the operating system refused */
  REEF_RESOURCE_EXHAUSTED = 5, /* more memory or time than allowed */
  REEF_INTERNAL = 6            /* a defect in Reef */
} reef_status;

/* The version of the library, such as "0.1.0". */
REEF_API const char* reef_version(void);
/* What the calling thread's last failed call has to say; "" if none failed. Valid until the thread's next call. */
REEF_API const char* reef_error_message(void);
/* Frees text that a function gave away. NULL is allowed. */
REEF_API void reef_string_free(char* text);

/* ---- Tensors ---- */

/* Element types, with TFLite's numbers. Others than these may appear (newer types). */
typedef enum reef_type {
  REEF_FLOAT32 = 0,
  REEF_FLOAT16 = 1,
  REEF_INT32 = 2,
  REEF_UINT8 = 3,
  REEF_INT64 = 4,
  REEF_STRING = 5,
  REEF_BOOL = 6,
  REEF_INT16 = 7,
  REEF_COMPLEX64 = 8,
  REEF_INT8 = 9,
  REEF_FLOAT64 = 10,
  REEF_COMPLEX128 = 11,
  REEF_UINT64 = 12,
  REEF_RESOURCE = 13,
  REEF_VARIANT = 14,
  REEF_UINT32 = 15,
  REEF_UINT16 = 16,
  REEF_INT4 = 17
} reef_type;

typedef struct reef_tensor {
  const char* name;
  int32_t type;  /* reef_type */
  int32_t index; /* among the tensors of the model's main subgraph; -1: of no model */
  int32_t rank;
  const int32_t* dims;      /* rank of them, outermost first */
  const int32_t* signature; /* the same with -1 where a size may vary; NULL: none may */
  void* data;               /* NULL: has no value now. Constants must not be written to */
  size_t bytes;
  /* real = scale * (q - zero_point); one scale, or one for each index of quantized_dimension. No scale: not quantized.
   */
  size_t scale_count;
  const float* scales;
  size_t zero_point_count;
  const int64_t* zero_points;
  int32_t quantized_dimension;
  int32_t is_constant;
  int32_t is_variable; /* keeps its value between invocations */
  int32_t is_dynamic;  /* an output whose sizes and memory may be others after every invoke */
  void* reserved[4];
} reef_tensor;

/* ---- Models ---- */

typedef struct reef_model reef_model;

/* A .tflite file, _edgetpu.tflite included. */
REEF_API reef_status reef_model_load(const char* path, reef_model** model);
/* The same from memory, which is copied. */
REEF_API reef_status reef_model_read(const void* bytes, size_t size, reef_model** model);
/* Interpreters that were made from it go on working. NULL is allowed, as in all _free functions. */
REEF_API void reef_model_free(reef_model* model);

REEF_API size_t reef_model_tensor_count(const reef_model* model);
/* Tensor `index` as the file has it; data only where it is constant. */
REEF_API reef_status reef_model_tensor(const reef_model* model, size_t index, reef_tensor* tensor);
REEF_API size_t reef_model_input_count(const reef_model* model);
REEF_API size_t reef_model_output_count(const reef_model* model);
/* Number of the tensor that is input or output i; -1 beyond the end. */
REEF_API int32_t reef_model_input(const reef_model* model, size_t i);
REEF_API int32_t reef_model_output(const reef_model* model, size_t i);

REEF_API size_t reef_model_op_count(const reef_model* model);
/* "CONV_2D", or a custom op's own name; NULL beyond the end. */
REEF_API const char* reef_model_op(const reef_model* model, size_t i);
/* Number of the tensor that is input or output i of an operator; -1: left out; -2 beyond the end. */
REEF_API int32_t reef_model_op_input(const reef_model* model, size_t op, size_t i);
REEF_API int32_t reef_model_op_output(const reef_model* model, size_t op, size_t i);
REEF_API size_t reef_model_subgraph_count(const reef_model* model);
/* Operators that run on an Edge TPU; 0: the model is not compiled for one. */
REEF_API size_t reef_model_edge_tpu_op_count(const reef_model* model);

REEF_API size_t reef_model_signature_count(const reef_model* model);
/* NULL beyond the end. */
REEF_API const char* reef_model_signature_key(const reef_model* model, size_t signature);
/* Entry i of a signature's inputs (or outputs): its name there, and the tensor. NULL beyond the end. */
REEF_API const char* reef_model_signature_input(const reef_model* model, size_t signature, size_t i, int32_t* tensor);
REEF_API const char* reef_model_signature_output(const reef_model* model, size_t signature, size_t i, int32_t* tensor);

/* ---- Training ---- */

struct reef_compile_options; /* below */

/* The model that the chip computes, after the rewrites of `reef compile`: what quantization-aware training must repeat.
 * Operators that the compiler would join into one table for the scales that they have stay as they are, because
 * training changes scales. *json: `ops`, for each operator its type, its attributes by TFLite's names, `on_cpu` (why
 * the chip does not run it;
 * "": it does) and `is_rewritten` (a rewrite made it); `rewrites`, a sentence each. `options` may be NULL. */
REEF_API reef_status reef_model_for_training(const reef_model* model, const struct reef_compile_options* options,
                                             reef_model** rewritten, char** json);
/* The same with all rewrites: what the chip computes as long as no scale changes. Operators named ReefFunction are
 * Reef's own; such a model cannot be saved. */
REEF_API reef_status reef_model_as_compiled(const reef_model* model, const struct reef_compile_options* options,
                                            reef_model** rewritten, char** json);

/* How a tensor stores real numbers on the chip, where codes are 0 to 255: real = scale * (code - zero_point). */
typedef struct reef_chip_affine {
  float scale;
  int32_t zero_point;
} reef_chip_affine;

/* Codes of operator `op`, a function of one 8-bit tensor that the chip computes by table, for all 256 input codes. */
REEF_API reef_status reef_chip_function(const reef_model* model, size_t op, reef_chip_affine in, reef_chip_affine out,
                                        int32_t codes[256]);
/* SOFTMAX's numerators, 0 to 65535, for elements 0 to 255 steps of `scale` below the largest. */
REEF_API reef_status reef_chip_exponentials(float scale, int32_t codes[256]);
/* The chip's table of one / sqrt(x) for x in [1, 4): eight polynomials, constant first, and where each gives way to the
 * next. */
REEF_API reef_status reef_chip_inverse_root(float one, float coefficients[8][5], float breaks[7]);

/* New content for a tensor of the main subgraph. */
typedef struct reef_tensor_edit {
  int32_t tensor;
  int32_t reserved_0;
  const void* data; /* NULL: stays; else as many bytes as the constant has */
  size_t bytes;
  const float* scales; /* NULL: stay; else as many as before, with as many zero points */
  const int64_t* zero_points;
  size_t scale_count;
} reef_tensor_edit;

/* Writes the model as a .tflite file with some of its tensors changed; the file appears whole or not at all. */
REEF_API reef_status reef_model_save(const reef_model* model, const reef_tensor_edit* edits, size_t count,
                                     const char* path);

/* ---- Edge TPUs ---- */

/* Which there are: environment variable REEF_DEVICES. "auto", the default: real ones if the machine has any, else two
 * virtual ones of each kind. "real": real ones. A list such as "usb,usb,pci": these virtual ones. "none". Real devices
 * are looked for with every call; one that was found keeps its number. */
typedef struct reef_device {
  const char* selector;    /* "usb:0" */
  const char* path;        /* "virtual/usb/0", "/sys/bus/usb/devices/2-1.4", "/dev/apex_0" */
  int32_t is_usb;          /* else PCIe */
  int32_t is_real;         /* else virtual */
  int64_t runs;            /* programs that it has executed to their end, parameter loads not counted */
  int64_t parameter_loads; /* how often parameters were brought to it; models compiled together stay side by side */
  const char* state;  /* of a real one: "waiting for firmware", "running", "ready", "in use", "no permission", ... */
  const char* detail; /* what is wrong with a real one and what to do, or "" */
  void* reserved[2];
} reef_device;

REEF_API size_t reef_device_count(void);
/* Text is valid as long as the process. */
REEF_API reef_status reef_device_get(size_t i, reef_device* device);
/* ":1", "usb", "usb:0", "pci:1", "" or "auto" (any), a path: the number of that device. */
REEF_API reef_status reef_device_find(const char* selector, size_t* i);
/* Other devices for the process from now on, with a list as in REEF_DEVICES. Interpreters keep theirs. */
REEF_API reef_status reef_devices_set(const char* kinds);

/* ---- Interpreters ---- */

typedef struct reef_interpreter reef_interpreter;

typedef struct reef_options {
  size_t struct_size;
  const char* device; /* NULL: an Edge TPU if the model needs one; "cpu": never; "virtual": never a real one; else as
                         for reef_device_find. A real one is opened, and in use until the interpreter is freed */
  int32_t threads;    /* of the CPU; 1 by default */
  int32_t profile;    /* 1: measure every op */
  int32_t tflite_2_9; /* 1: where releases of TFLite's kernels differ, follow 2.9 and not the newest */
  int32_t preserve_all_tensors; /* 1: reef_interpreter_tensor has the values of all tensors; takes more memory */
  double time_limit_seconds;    /* for each prepare and invoke; 0: none */
  int64_t max_memory_bytes;     /* for tensors; 0: 4 GiB */
  int32_t fused_floats; /* 1: float products are added with one rounding: faster on most CPUs, not TFLite's bits */
  int32_t reserved[3];  /* 0 */
  const char* clock;    /* of a real device: "max", "high", "medium", "low"; NULL: the one that it has, else max */
  const char* firmware; /* file for sticks that wait for it; NULL: REEF_FIRMWARE, else an installed libedgetpu.so.1 */
} reef_options;
REEF_API void reef_options_init(reef_options* options);

/* options may be NULL. A model with an op that cannot be run is refused, each such op by name. */
REEF_API reef_status reef_interpreter_create(const reef_model* model, const reef_options* options,
                                             reef_interpreter** interpreter);
REEF_API void reef_interpreter_free(reef_interpreter* interpreter);

REEF_API size_t reef_interpreter_input_count(const reef_interpreter* interpreter);
REEF_API size_t reef_interpreter_output_count(const reef_interpreter* interpreter);
/* data is there from prepare on, at the same place until the next prepare; outputs that have no fixed size get theirs
 * in every invoke. */
REEF_API reef_status reef_interpreter_input(const reef_interpreter* interpreter, size_t i, reef_tensor* tensor);
REEF_API reef_status reef_interpreter_output(const reef_interpreter* interpreter, size_t i, reef_tensor* tensor);
/* Any tensor of the main subgraph, by its number. Data of those computed inside the model is there after prepare if the
 * options say preserve_all_tensors, and means something after invoke; tensors of a part that runs on an Edge TPU are
 * inside one operator and no longer in the model. */
REEF_API reef_status reef_interpreter_tensor(const reef_interpreter* interpreter, size_t index, reef_tensor* tensor);

/* reef_interpreter_prepare must follow. */
REEF_API reef_status reef_interpreter_resize_input(reef_interpreter* interpreter, size_t i, const int32_t* dims,
                                                   int32_t rank);
/* Infers shapes, gives tensors their memory, reads Edge TPU programs. Inputs lose their values. */
REEF_API reef_status reef_interpreter_prepare(reef_interpreter* interpreter);
REEF_API reef_status reef_interpreter_invoke(reef_interpreter* interpreter);
/* Variables to zero, as at the start. */
REEF_API reef_status reef_interpreter_reset_variables(reef_interpreter* interpreter);

/* The device that Edge TPU ops run on. REEF_NOT_FOUND: the model has none. */
REEF_API reef_status reef_interpreter_device(const reef_interpreter* interpreter, reef_device* device);
/* What went wrong with the device and was mended since the last call, a line for each; "" if nothing. Of all users of
 * the device. Freed with reef_string_free. */
REEF_API reef_status reef_interpreter_device_notes(reef_interpreter* interpreter, char** text);
/* Sentences about ops whose results deserve attention; known after prepare. NULL beyond the end. */
REEF_API const char* reef_interpreter_note(const reef_interpreter* interpreter, size_t i);

typedef struct reef_op_profile {
  const char* op;     /* "CONV_2D" */
  const char* output; /* name of its first output */
  int32_t subgraph;
  int32_t op_index;
  int64_t calls;
  double total_ms; /* measured */
  void* reserved[2];
} reef_op_profile;
/* Takes the figures of all invocations so far, in the order of execution; gives their number. 0 without
 * options.profile. */
REEF_API size_t reef_interpreter_take_profile(reef_interpreter* interpreter);
/* Entry i of what was last taken. */
REEF_API reef_status reef_interpreter_profile(const reef_interpreter* interpreter, size_t i, reef_op_profile* profile);

/* Bytes for tensors: now, and at most so far. */
REEF_API reef_status reef_interpreter_memory(const reef_interpreter* interpreter, int64_t* now, int64_t* peak);

/* ---- Pipelines: the segments of one model, each busy with another set of inputs ---- */

typedef struct reef_pipeline reef_pipeline;
typedef struct reef_results reef_results;

/* Interpreters of the segments in order, prepared. They belong to the pipeline until it is freed. queue_size: sets that
 * may wait before each segment (0: 2). */
REEF_API reef_status reef_pipeline_create(reef_interpreter* const* segments, size_t count, size_t queue_size,
                                          reef_pipeline** pipeline);
REEF_API void reef_pipeline_free(reef_pipeline* pipeline);
/* How many sets may wait to be computed (push waits beyond that), and results to be popped; 0: any number. */
REEF_API reef_status reef_pipeline_set_queue_sizes(reef_pipeline* pipeline, size_t inputs, size_t outputs);
/* These four may be called from any number of threads at once.
 * push copies the tensors (name, type, dims, data, bytes count) and waits while the pipeline is full. */
REEF_API reef_status reef_pipeline_push(reef_pipeline* pipeline, const reef_tensor* tensors, size_t count);
REEF_API reef_status reef_pipeline_close(reef_pipeline* pipeline);
/* Waits for the next outputs of the last segment. *results is NULL when the pipeline is closed and empty. */
REEF_API reef_status reef_pipeline_pop(reef_pipeline* pipeline, reef_results** results);
/* Runs of a segment so far and milliseconds that they took (measured). */
REEF_API reef_status reef_pipeline_stats(const reef_pipeline* pipeline, size_t segment, int64_t* runs,
                                         double* total_ms);

REEF_API size_t reef_results_count(const reef_results* results);
REEF_API reef_status reef_results_tensor(const reef_results* results, size_t i, reef_tensor* tensor);
REEF_API void reef_results_free(reef_results* results);

/* ---- Compiling and checking ---- */

/* Told of progress, on the calling thread: what is being done ("plan", "verify", ...), for which file, and how much of
 * all is done, from 0 to 1. */
typedef void (*reef_progress)(void* user, const char* stage, const char* file, double done);

struct reef_convert_options;
struct reef_quantize_options;

typedef struct reef_compile_options {
  size_t struct_size;
  const char* out_dir;              /* folder, or a name that ends with .tflite; NULL: the current folder */
  const char* intermediate_tensors; /* names with commas between them that end the part; NULL: none */
  const char* link;                 /* host and link that times are predicted for; NULL: USB 3 */
  int32_t num_segments;             /* 1: not cut */
  int32_t min_runtime_version;      /* 10 to 14; 0: the newest */
  int32_t level;                    /* 0: Google's choices; 1: Reef's own; 2: faster, more memory */
  int32_t several_parts;            /* 1: more than one part for the chip, where that saves time */
  int32_t search;                   /* 1: if it does not compile, the largest part that does */
  int32_t rewrites;                 /* 1: change the model so that more fits; 0: leave it */
  int32_t verify;                   /* -1: where that is quick; 0: never; 1: always */
  int32_t reserved_0;
  double timeout_seconds;
  reef_progress progress; /* NULL: nobody is told */
  void* progress_user;
  /* For models that are not quantized .tflite files. `convert`: what the file leaves open; NULL: nothing. `quantize`:
   * the samples and how to quantize; NULL: with the scales that the model carries. Both must live until the call ends.
   */
  const struct reef_convert_options* convert;
  const struct reef_quantize_options* quantize;
} reef_compile_options;
REEF_API void reef_compile_options_init(reef_compile_options* options);

/* Compiles models together (they share the chip's memory), as `reef compile` does: .tflite and .onnx files, float ones
 * with samples to quantize them with. All files ("<stem>_int8.tflite" of what was quantized included) are written, or
 * none.
 * *json receives what docs/json.md describes, also of a refusal; free it with reef_string_free. */
REEF_API reef_status reef_compile(const char* const* models, size_t count, const reef_compile_options* options,
                                  char** json);
/* What of a model runs on the Edge TPU, and why the rest does not: as docs/json.md describes it, and as text for
 * people. Either may be NULL. Of the options, those that `reef check` has are looked at. */
REEF_API reef_status reef_check(const char* model, const reef_compile_options* options, char** json, char** text);

/* ---- Converting and quantizing ---- */

typedef struct reef_convert_options {
  size_t struct_size;
  const char*
      input_shapes; /* sizes of inputs that the file leaves open, "name:1,3,224,224", with semicolons between; NULL */
  const char* keep_nchw;    /* names of inputs and outputs that stay channels-first, with commas between; NULL: none */
  int32_t simplify;         /* 1: make the imported graph small */
  int32_t keep_qdq;         /* 1: of a model that carries scales, leave QUANTIZE and DEQUANTIZE as they are */
  const char* input_values; /* inputs with a fixed value, "name:1,2,3", with semicolons between; NULL: none */
  const char* io;           /* of inputs and outputs that have scales: "int8", "uint8", "float32" */
  int32_t pad_nms;          /* 1: NonMaxSuppression gives a result of fixed size and a count */
  int32_t reserved_0;
} reef_convert_options;
REEF_API void reef_convert_options_init(reef_convert_options* options);

/* An ONNX model as a .tflite file, channels-last, as `reef convert` makes it. A model that carries scales (QDQ) becomes
 * integer operators with these. *json: output, inputs, outputs, notes. */
REEF_API reef_status reef_convert(const char* model, const char* output, const reef_convert_options* options,
                                  char** json);

typedef struct reef_quantize_options {
  size_t struct_size;
  const char* data;        /* samples to calibrate with: a folder of pictures, an .npz or .npy file; NULL: none */
  const char* arrays;      /* of the .npz; NULL: by usual names */
  const char* preprocess;  /* how pictures become numbers, such as "mean=127.5,std=127.5" or "unit"; NULL: guessed */
  const char* calibration; /* "auto", "minmax", "moving-average", "percentile", "entropy", "mse" */
  const char* mode;        /* "int8", "int16x8", "dynamic", "float16" */
  const char* io;          /* of inputs and outputs: "int8", "uint8", "float32" */
  const char* keep_float;  /* operators that stay float, by the name of a result, with commas between; NULL: none */
  int64_t limit;           /* samples at most; 0: all */
  int64_t held_back;       /* samples to measure with; -1: a fifth */
  int32_t threads;         /* the result does not depend on it */
  int32_t full_integer;    /* 1: fail rather than leave an operator in float */
  int32_t recover;         /* 1: try what may win accuracy back, keep what does; 0: do not */
  int32_t reserved_0;
  reef_progress progress; /* told the phase and how much of it is done; the file is "" */
  void* progress_user;
} reef_quantize_options;
REEF_API void reef_quantize_options_init(reef_quantize_options* options);

/* A float model (.tflite or .onnx) and samples in, an integer model out, as `reef quantize` does it; *json as
 * docs/json.md describes it. */
REEF_API reef_status reef_quantize(const char* model, const char* output, const reef_quantize_options* options,
                                   char** json);

/* ---- Pictures ---- */

typedef struct reef_image reef_image;

/* Decodes JPEG, PNG or BMP to 1, 3 or 4 channels and, unless width and height are 0, resizes it (bilinear). */
REEF_API reef_status reef_image_load(const char* path, int32_t channels, int32_t width, int32_t height,
                                     reef_image** image);
/* Rows of width * channels samples each; copied. */
REEF_API reef_status reef_image_create(int32_t width, int32_t height, int32_t channels, const uint8_t* samples,
                                       reef_image** image);
REEF_API int32_t reef_image_width(const reef_image* image);
REEF_API int32_t reef_image_height(const reef_image* image);
REEF_API int32_t reef_image_channels(const reef_image* image);
/* Height rows of width pixels, channels interleaved. */
REEF_API uint8_t* reef_image_samples(reef_image* image);
REEF_API reef_status reef_image_resize(const reef_image* image, int32_t width, int32_t height, reef_image** resized);
/* As PNG. */
REEF_API reef_status reef_image_save(const reef_image* image, const char* path);
REEF_API void reef_image_free(reef_image* image);

/* ---- Learning ---- */

/* New classes from a handful of pictures, as `reef learn imprint` and `reef learn softmax` do it: `request` is a JSON
 * object with the names of their options, _ for - ({"method": "softmax", "model": ..., "data": ..., "output": ...}).
 * All files are written or none. `json` (may be NULL) is the report of docs/json.md, freed with reef_string_free.
 * `progress` (may be NULL) is told how many samples are embedded, from any thread, one call at a time. */
REEF_API reef_status reef_learn(const char* request, void (*progress)(void* user, int64_t done, int64_t all),
                                void* user, char** json);

/* Imprinting one embedding at a time, for callers who run the extractor themselves; the shape of Coral's
 * ImprintingEngine. Models are .tflite bytes: classifiers or extractors, compiled or not. */
typedef struct reef_imprinting reef_imprinting;
REEF_API reef_status reef_imprinting_create(const void* model, size_t size, int32_t keep_classes,
                                            reef_imprinting** engine);
REEF_API int32_t reef_imprinting_dimension(const reef_imprinting* engine);
REEF_API int32_t reef_imprinting_class_count(const reef_imprinting* engine);
/* "" where the model does not tell it, or if there is no such class. */
REEF_API const char* reef_imprinting_class_name(const reef_imprinting* engine, int32_t class_id);
REEF_API reef_status reef_imprinting_set_class_name(reef_imprinting* engine, int32_t class_id, const char* name);
/* `class_id`: a class that imprinting made, or the number of classes: a new one. */
REEF_API reef_status reef_imprinting_train(reef_imprinting* engine, const float* embedding, size_t count,
                                           int32_t class_id);
/* Model files, freed with reef_string_free. */
REEF_API reef_status reef_imprinting_extractor(const reef_imprinting* engine, char** bytes, size_t* size);
REEF_API reef_status reef_imprinting_model(const reef_imprinting* engine, char** bytes, size_t* size);
REEF_API void reef_imprinting_free(reef_imprinting* engine);

/* Softmax regression of `count` rows of `dimension` numbers: `weights` gets a row for each class, `biases` a number.
 * `l2` < 0: chosen on a part that is held back. */
REEF_API reef_status reef_softmax_train(const float* rows, const int32_t* labels, size_t count, size_t dimension,
                                        int32_t classes, double l2, float* weights, float* biases);
/* FULLY_CONNECTED and SOFTMAX with these weights behind an extractor. The range of 8-bit scores is that of `rows`. The
 * model file is freed with reef_string_free. */
REEF_API reef_status reef_softmax_model(const void* extractor, size_t size, const float* weights, const float* biases,
                                        int32_t classes, size_t dimension, const float* rows, size_t count,
                                        char** bytes, size_t* bytes_size);

/* ---- Data pipelines ---- */

/* Samples read, decoded, varied and put into batches on threads (docs/data.md). `recipe` is a JSON object:
 *   {"data": {"path": "shards", "array": ..., "truth": ..., "labels": ...},    or {"count": 100}: from `call`
 *    "steps": [{"step": "shuffle", "seed": 7}, {"step": "resize", "width": 96, "height": 96}, ...],
 *    "threads": 0, "ahead": 0, "seed": 0}
 * with the steps shuffle, shard, take, skip, decode, resize, vary, cache, call, batch and mixup. */
typedef struct reef_flow reef_flow;
typedef struct reef_flow_run reef_flow_run;
typedef struct reef_batch reef_batch;
typedef struct reef_sample reef_sample; /* valid during the call that got it */

/* Fills or changes a sample. `step`: -1 to fill the sample with this number, else the "id" of the step. From several
 * threads at once. Not 0: it could not; the pipeline's error then is that of reef_sample_fail. */
typedef int32_t (*reef_flow_call)(void* user, int32_t step, int64_t number, reef_sample* sample);

/* `call` may be NULL if nothing in the recipe needs it; it and `user` must outlive the flow and its runs. */
REEF_API reef_status reef_flow_create(const char* recipe, reef_flow_call call, void* user, reef_flow** flow);
REEF_API void reef_flow_free(reef_flow* flow);          /* runs go on */
REEF_API int64_t reef_flow_size(const reef_flow* flow); /* samples of an epoch */
/* Numbers of the samples in their source, reef_flow_size() of them. */
REEF_API reef_status reef_flow_order(const reef_flow* flow, int64_t epoch, int64_t* numbers);
/* {"description": ..., "class_names": {"0": ...}}; reef_string_free. */
REEF_API reef_status reef_flow_describe(const reef_flow* flow, char** json);
/* The name of a sample, by its number in the source; reef_string_free. */
REEF_API reef_status reef_flow_name(const reef_flow* flow, int64_t number, char** name);

REEF_API reef_status reef_flow_start(const reef_flow* flow, int64_t epoch, reef_flow_run** run);
REEF_API void reef_flow_run_free(reef_flow_run* run);
/* The next batch; NULL: the epoch is over. */
REEF_API reef_status reef_flow_run_next(reef_flow_run* run, reef_batch** batch);
/* What each stage did: {"stages": [...], "idle_with_work_s": ...} (docs/data.md); reef_string_free. */
REEF_API reef_status reef_flow_run_counters(const reef_flow_run* run, char** json);

REEF_API void reef_batch_free(reef_batch* batch);
REEF_API size_t reef_batch_count(const reef_batch* batch);
/* All samples, [count, ...]. Valid as long as the batch, as is what follows. */
REEF_API reef_status reef_batch_samples(const reef_batch* batch, reef_tensor* tensor);
REEF_API const int64_t* reef_batch_numbers(const reef_batch* batch);
/* What is right for a sample, as float64; a rank of 0: one number. `data` is NULL where nothing is known. */
REEF_API reef_status reef_batch_truth(const reef_batch* batch, size_t row, reef_tensor* tensor);
/* With mixup: row i is `share` of itself and the rest of row mixed_with[i]; NULL: nothing was mixed. */
REEF_API const int64_t* reef_batch_mixed_with(const reef_batch* batch, double* share);

/* A picture is uint8 [height, width, channels], other samples have any numbers. Before it is decoded a picture is a row
 * of bytes. */
REEF_API reef_status reef_sample_get(const reef_sample* sample, reef_tensor* tensor);
REEF_API reef_status reef_sample_set(reef_sample* sample, const reef_tensor* tensor);
REEF_API reef_status reef_sample_set_truth(reef_sample* sample, const double* values, const int64_t* shape,
                                           size_t rank);
REEF_API void reef_sample_fail(reef_sample* sample, const char* message);

/* Varies one picture in place, as the step "vary" does: `how` is its JSON object. `boxes` (may be NULL) are
 * box_count rows of centre, size and class in fractions of the picture; they move along, and fewer may be left. */
REEF_API reef_status reef_vary(uint8_t* pixels, int32_t height, int32_t width, int32_t channels, const char* how,
                               uint64_t seed, int64_t epoch, int64_t number, double* boxes, size_t* box_count);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* REEF_REEF_H_ */
