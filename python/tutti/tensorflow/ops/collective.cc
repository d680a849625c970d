// TuttiCollective: every collective as one op of TensorFlow's graphs. It submits to the process's
// session and is done when the operation is, by a callback of the library: no thread waits, so a
// thousand of them may be outstanding, in whatever order the graph comes to them.
//
// Compiled against the installed TensorFlow by custom_op.py; what it calls of libtutti_comm.so it
// is told by tutti_tensorflow_use, so that it is linked with nothing of tutti.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tutti_comm.h"

namespace {

using tensorflow::AsyncOpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// The library's functions, and where the number of the process's session stands (0: none).
struct Library {
  const std::atomic<tutti_comm_session>* session;
  decltype(&tutti_comm_request_init) request_init;
  decltype(&tutti_comm_submit) submit;
  decltype(&tutti_comm_operation_wait) wait;
  decltype(&tutti_comm_operation_received) received;
  decltype(&tutti_comm_operation_value) value;
  decltype(&tutti_comm_operation_release) release;
  decltype(&tutti_comm_last_error) last_error;
};
Library library;

// Operations that are over. A handle must not be closed by the callback that tells so; the next
// submission closes it.
class Finished {
 public:
  void Add(tutti_comm_operation operation) {
    const std::lock_guard<std::mutex> lock(mutex_);
    operations_.push_back(operation);
  }
  void Release() {
    std::vector<tutti_comm_operation> operations;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      operations.swap(operations_);
    }
    for (const tutti_comm_operation operation : operations) library.release(operation);
  }

 private:
  std::mutex mutex_;
  std::vector<tutti_comm_operation> operations_;
};
Finished& TheFinished() {
  static Finished* const finished = new Finished;
  return *finished;
}

// -1: not carried.
tutti_comm_type TypeOf(tensorflow::DataType type) {
  switch (type) {
    case tensorflow::DT_DOUBLE:
      return TUTTI_COMM_FLOAT64;
    case tensorflow::DT_FLOAT:
      return TUTTI_COMM_FLOAT32;
    case tensorflow::DT_HALF:
      return TUTTI_COMM_FLOAT16;
    case tensorflow::DT_BFLOAT16:
      return TUTTI_COMM_BFLOAT16;
    case tensorflow::DT_INT64:
      return TUTTI_COMM_INT64;
    case tensorflow::DT_INT32:
      return TUTTI_COMM_INT32;
    case tensorflow::DT_INT16:
      return TUTTI_COMM_INT16;
    case tensorflow::DT_INT8:
      return TUTTI_COMM_INT8;
    case tensorflow::DT_UINT8:
      return TUTTI_COMM_UINT8;
    case tensorflow::DT_BOOL:
      return TUTTI_COMM_BOOL;
    default:
      return -1;
  }
}

// Ranks that ask for different things are a failed precondition, as with Horovod; what makes no
// sense by itself is an invalid argument; a lost rank is unknown, which elastic training catches.
Status Failure(const std::string& name, tutti_comm_status status, bool submitted) {
  const std::string text = "collective \"" + name + "\": " + library.last_error();
  if (status == TUTTI_COMM_INVALID_ARGUMENT && submitted) {
    return tensorflow::errors::FailedPrecondition(text);
  }
  if (status == TUTTI_COMM_INVALID_ARGUMENT || status == TUTTI_COMM_NOT_FOUND ||
      status == TUTTI_COMM_ALREADY_EXISTS) {
    return tensorflow::errors::InvalidArgument(text);
  }
  return tensorflow::errors::Unknown(text);
}

void* DataOf(const Tensor& tensor) {
  static char nothing;  // an empty tensor may have no memory, which would mean "no output"
  void* const data = const_cast<char*>(tensor.tensor_data().data());
  return data == nullptr ? &nothing : data;
}

double DoubleOf(tensorflow::int64 bits) {  // attributes have no doubles
  double value;
  static_assert(sizeof(value) == sizeof(bits));
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

class Collective : public AsyncOpKernel {
 public:
  explicit Collective(OpKernelConstruction* construction) : AsyncOpKernel(construction) {
    tensorflow::int64 prescale = 0;
    tensorflow::int64 postscale = 0;
    OP_REQUIRES_OK(construction, construction->GetAttr("kind", &kind_));
    OP_REQUIRES_OK(construction, construction->GetAttr("collective", &name_));
    OP_REQUIRES_OK(construction, construction->GetAttr("reduction", &reduction_));
    OP_REQUIRES_OK(construction, construction->GetAttr("root", &root_));
    OP_REQUIRES_OK(construction, construction->GetAttr("prescale_bits", &prescale));
    OP_REQUIRES_OK(construction, construction->GetAttr("postscale_bits", &postscale));
    OP_REQUIRES_OK(construction, construction->GetAttr("process_set", &process_set_));
    prescale_ = DoubleOf(prescale);
    postscale_ = DoubleOf(postscale);
  }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    TheFinished().Release();
    const tutti_comm_session session =
        library.session == nullptr ? 0 : library.session->load(std::memory_order_acquire);
    OP_REQUIRES_ASYNC(
        context, session != 0,
        tensorflow::errors::FailedPrecondition("Horovod has not been initialized; use hvd.init()."),
        done);
    Tensors tensors;
    OP_REQUIRES_OK_ASYNC(context, AddTensors(context, tensors), done);
    tutti_comm_request request;
    library.request_init(&request, sizeof(request));
    Describe(context, tensors, request);
    Call* const call = new Call{this, context, std::move(done)};
    request.context = call;
    tutti_comm_operation operation = 0;
    const tutti_comm_status status = library.submit(session, &request, &operation);
    if (status == TUTTI_COMM_OK) return;  // perhaps it is over already: touch nothing any more
    context->CtxFailure(Failure(name_, status, false));
    Finish(call);
  }

 private:
  // One execution, from the submission to the callback.
  struct Call {
    Collective* kernel;
    OpKernelContext* context;
    DoneCallback done;
  };
  struct Tensors {
    std::vector<tutti_comm_tensor> tensors;
    std::vector<std::vector<int64_t>> shapes;
    std::vector<int64_t> splits;
  };

  bool KeepsShape() const {
    return kind_ == TUTTI_COMM_ALL_REDUCE || kind_ == TUTTI_COMM_BROADCAST;
  }

  // The last input is splits, the last output what was received.
  Status AddTensors(OpKernelContext* context, Tensors& to) const {
    const int count = context->num_inputs() - 1;
    to.shapes.resize(count);
    for (int i = 0; i < count; ++i) {
      const Tensor& input = context->input(i);
      for (const auto& dimension : input.shape()) to.shapes[i].push_back(dimension.size);
      Tensor* output = nullptr;
      if (KeepsShape()) {
        TF_RETURN_IF_ERROR(
            context->forward_input_or_allocate_output({i}, i, input.shape(), &output));
      }
      to.tensors.push_back({DataOf(input), output == nullptr ? nullptr : DataOf(*output),
                            to.shapes[i].data(), static_cast<int32_t>(to.shapes[i].size()),
                            TypeOf(input.dtype())});
    }
    const auto splits = context->input(count).flat<tensorflow::int64>();
    to.splits.assign(splits.data(), splits.data() + splits.size());
    return Status();
  }

  void Describe(OpKernelContext* context, const Tensors& tensors, tutti_comm_request& to) const {
    to.kind = kind_;
    to.process_set = process_set_;
    to.name = kind_ == TUTTI_COMM_JOIN ? nullptr : name_.c_str();
    to.op = reduction_;
    to.root = root_;
    to.prescale = prescale_;
    to.postscale = postscale_;
    to.tensors = tensors.tensors.data();
    to.tensor_count = tensors.tensors.size();
    to.tensor_size = sizeof(tutti_comm_tensor);
    if (!tensors.splits.empty()) {
      to.splits = tensors.splits.data();
      to.split_count = tensors.splits.size();
    }
    to.allocate = &Collective::Allocate;
    to.done = &Collective::Done;
  }

  // Called by a thread of the library, before Done.
  static void* Allocate(void* context, size_t index, const int64_t* shape, int32_t dimensions,
                        size_t) {
    TensorShape of;
    for (int32_t i = 0; i < dimensions; ++i) of.AddDim(shape[i]);
    Tensor* output = nullptr;
    OpKernelContext* const kernel = static_cast<Call*>(context)->context;
    const Status status = kernel->allocate_output(static_cast<int>(index), of, &output);
    return status.ok() ? DataOf(*output) : nullptr;
  }

  static void Done(void* context, tutti_comm_operation operation) {
    Call* const call = static_cast<Call*>(context);
    const tutti_comm_status status = library.wait(operation, 0);  // it is over: its own status
    if (status == TUTTI_COMM_OK) {
      call->kernel->Report(call->context, operation);
    } else {
      call->context->CtxFailure(Failure(call->kernel->name_, status, true));
    }
    TheFinished().Add(operation);
    Finish(call);
  }

  // Rows from every rank, or who joined last, or nothing.
  void Report(OpKernelContext* context, tutti_comm_operation operation) const {
    const int64_t* rows = nullptr;
    size_t count = 0;
    int64_t last = 0;
    if (kind_ == TUTTI_COMM_JOIN) {
      library.value(operation, &last);
      rows = &last;
      count = 1;
    } else if (kind_ == TUTTI_COMM_ALL_TO_ALL || kind_ == TUTTI_COMM_ALL_GATHER) {
      library.received(operation, &rows, &count);
    }
    Tensor* received = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(context->num_outputs() - 1,
                                            {static_cast<tensorflow::int64>(count)}, &received));
    std::copy(rows, rows + count, received->flat<tensorflow::int64>().data());
  }

  // `done` may end the step, and with it the kernel's context.
  static void Finish(Call* call) {
    const DoneCallback done = std::move(call->done);
    delete call;
    done();
  }

  int kind_ = 0;
  std::string name_;
  int reduction_ = 0;
  int root_ = 0;
  double prescale_ = 1;
  double postscale_ = 1;
  int process_set_ = 0;
};

// Stateful: neither folded when its inputs are constant nor merged with its like. Shapes are
// inferred in Python (nodes.py), as for the nodes that do without this op.
REGISTER_OP("TuttiCollective")
    .Attr("T: list({double, float, half, bfloat16, int64, int32, int16, int8, uint8, bool}) >= 0")
    .Attr("kind: int")
    .Attr("collective: string")
    .Attr("reduction: int = 0")
    .Attr("root: int = 0")
    .Attr("prescale_bits: int")
    .Attr("postscale_bits: int")
    .Attr("process_set: int = 0")
    .Input("tensors: T")
    .Input("splits: int64")
    .Output("outputs: T")
    .Output("received: int64")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::UnknownShape);

REGISTER_KERNEL_BUILDER(Name("TuttiCollective").Device(tensorflow::DEVICE_CPU), Collective);

}  // namespace

extern "C" __attribute__((visibility("default"))) void tutti_tensorflow_use(const Library* of) {
  library = *of;
}
