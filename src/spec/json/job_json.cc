#include "spec/json/job_json.h"

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "spec/json/flow_json.h"
#include "spec/json/json_fields.h"
#include "spec/json/place_json.h"
#include "spec/types/enum_names.h"

namespace tutti::spec {
namespace {
using nlohmann::json;

// null stands for "no limit": JSON has no infinity.
json JsonOfTimeout(absl::Duration timeout) {
  if (timeout == absl::InfiniteDuration()) return nullptr;
  return absl::ToDoubleSeconds(timeout);
}

void ReadTimeout(const json& document, JsonFields& fields, JobSpec& spec) {
  if (document.is_object() && document.contains("timeout_seconds") &&
      document["timeout_seconds"].is_null()) {
    fields.Ignore("timeout_seconds");
    spec.timeout = absl::InfiniteDuration();
    return;
  }
  double seconds = -1;
  fields.Read("timeout_seconds", seconds);
  if (seconds >= 0) spec.timeout = absl::Seconds(seconds);
}

json JsonOfSlurm(const SlurmSettings& slurm) {
  json document = {{"cpus_per_node", slurm.cpus_per_node},
                   {"exclusive", slurm.exclusive == true},
                   {"not_exclusive", slurm.exclusive == false},
                   {"options", slurm.options},
                   {"shape", slurm.shape}};
  for (const SlurmText& text : kSlurmTexts) document[text.key] = slurm.*text.member;
  return document;
}

void ReadSlurm(const json& document, JsonFields& fields, SlurmSettings& slurm) {
  if (!document.is_object() || !document.contains("slurm")) return;
  fields.Ignore("slurm");
  JsonFields inner(document["slurm"], fields.PathOf("slurm"), Missing::kKeepsDefault);
  for (const SlurmText& text : kSlurmTexts) inner.Read(text.key, slurm.*text.member);
  inner.Read("cpus_per_node", slurm.cpus_per_node, 0, 65536);
  bool exclusive = false, not_exclusive = false;  // neither: the compute's word
  inner.Read("exclusive", exclusive);
  inner.Read("not_exclusive", not_exclusive);
  if (exclusive || not_exclusive) slurm.exclusive = exclusive;
  inner.Read("options", slurm.options);
  inner.Read("shape", slurm.shape);
  fields.Update(inner.Finish());
}

json JsonOfNodeShare(const std::optional<NodeShare>& part) {
  if (!part) return nullptr;
  return {{"cpus", part->cpus}, {"memory_bytes", part->memory_bytes}, {"gpus", part->gpus}};
}

void ReadNodeShare(const json& document, JsonFields& fields, std::optional<NodeShare>& part) {
  if (!document.is_object() || !document.contains("part")) return;
  fields.Ignore("part");
  part.emplace();
  JsonFields inner(document["part"], fields.PathOf("part"), Missing::kKeepsDefault);
  inner.Read("cpus", part->cpus, 0, std::numeric_limits<int>::max());
  inner.Read("memory_bytes", part->memory_bytes, 0);
  inner.Read("gpus", part->gpus, 0, std::numeric_limits<int>::max());
  fields.Update(inner.Finish());
}

void ReadPlaceField(const json& document, const char* name, JsonFields& fields,
                    std::optional<DataPlace>& place) {
  if (!document.is_object() || !document.contains(name)) return;
  fields.Ignore(name);
  fields.Update(ReadPlace(document[name], fields.PathOf(name), place.emplace()));
}

// The fields of a job, each once: a new member of JobSpec that is to survive is a line here. A
// visitor has Always (the field is written for every job), Rare (for those whose value is not the
// default), and of numbers the least that they may be.
template <class Visitor>
void VisitFields(Visitor& visitor) {
  visitor.Always("file_name", &JobSpec::file_name);
  visitor.Always("name", &JobSpec::name);
  visitor.Always("display_name", &JobSpec::display_name);
  visitor.Always("experiment_name", &JobSpec::experiment_name);
  visitor.Always("description", &JobSpec::description);
  visitor.Always("tags", &JobSpec::tags);
  visitor.Always("command", &JobSpec::command);
  visitor.Always("command_line", &JobSpec::command_line, 0);
  visitor.Always("code", &JobSpec::code);
  visitor.Always("code_line", &JobSpec::code_line, 0);
  visitor.Always("environment", &JobSpec::environment);
  visitor.Always("environment_variables", &JobSpec::environment_variables);
  visitor.Always("compute", &JobSpec::compute);
  visitor.Always("inputs", &JobSpec::inputs);
  visitor.Always("outputs", &JobSpec::outputs);
  visitor.Always("distribution", &JobSpec::distribution);
  visitor.Always("instance_count", &JobSpec::instance_count, 1);
  visitor.Always("timeout_seconds", &JobSpec::timeout);
  visitor.Always("priority", &JobSpec::priority);
  visitor.Rare("directory", &JobSpec::directory);
  visitor.Rare("origin", &JobSpec::origin);
  visitor.Rare("max_retries", &JobSpec::max_retries, 0);
  visitor.Rare("resume", &JobSpec::resume);
  visitor.Rare("slurm", &JobSpec::slurm);
  visitor.Rare("part", &JobSpec::share);
  visitor.Rare("secret_variables", &JobSpec::secret_variables);
  visitor.Rare("secret_files", &JobSpec::secret_files);
  visitor.Rare("logs_place", &JobSpec::logs_place);
  visitor.Rare("mounts", &JobSpec::mounts);
  visitor.Rare("additional_includes", &JobSpec::additional_includes);
  visitor.Rare("reusable", &JobSpec::reusable);
  visitor.Rare("container_options", &JobSpec::container_options);
  visitor.Rare("kind", &JobSpec::kind);
  visitor.Rare("steps", &JobSpec::steps);
  visitor.Rare("continue_on_step_failure", &JobSpec::continue_on_step_failure);
  visitor.Rare("first_step", &JobSpec::first_step);
  visitor.Rare("last_step", &JobSpec::last_step);
  visitor.Rare("sweep", &JobSpec::sweep);
}

const JobSpec& DefaultJob() {
  static const auto* const job = new JobSpec();
  return *job;
}

template <class Value>
constexpr bool kIsPlain = std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string> ||
                          std::is_same_v<Value, std::vector<std::string>> ||
                          std::is_same_v<Value, std::map<std::string, std::string>>;

class JobWriter {
 public:
  explicit JobWriter(const JobSpec& spec) : spec_(spec) {}

  template <class Value>
  void Always(const char* name, Value JobSpec::*member, int least = 0) {
    document_[name] = Written(spec_.*member);
  }
  template <class Value>
  void Rare(const char* name, Value JobSpec::*member, int least = 0) {
    json written = Written(spec_.*member);
    if (written != Written(DefaultJob().*member)) document_[name] = std::move(written);
  }
  json Take() { return std::move(document_); }

 private:
  template <class Value>
  static json Written(const Value& value) {
    if constexpr (kIsPlain<Value>) {
      return value;
    } else {
      return JsonOf(value);
    }
  }
  static json Written(absl::Duration timeout) { return JsonOfTimeout(timeout); }
  static json Written(const SlurmSettings& slurm) { return JsonOfSlurm(slurm); }
  static json Written(const std::optional<NodeShare>& part) { return JsonOfNodeShare(part); }
  static json Written(const std::optional<DataPlace>& place) {
    return place ? JsonOf(*place) : json();
  }
  static json Written(JobKind kind) { return std::string(Name(kind)); }
  static json Written(const std::optional<Sweep>& sweep) { return sweep ? JsonOf(*sweep) : json(); }

  const JobSpec& spec_;
  json document_ = json::object();
};

class JobReader {
 public:
  JobReader(const json& document, const std::string& path, JobSpec& spec)
      : document_(document), fields_(document, path, Missing::kKeepsDefault), spec_(spec) {}

  template <class Value>
  void Always(const char* name, Value JobSpec::*member) {
    Read(name, spec_.*member);
  }
  void Always(const char* name, int JobSpec::*member, int least) {
    fields_.Read(name, spec_.*member, least, std::numeric_limits<int>::max());
  }
  template <class Value, class... Least>
  void Rare(const char* name, Value JobSpec::*member, Least... least) {
    Always(name, member, least...);
  }
  absl::Status Finish() { return fields_.Finish(); }

 private:
  template <class Value>
  void Read(const char* name, Value& value) {
    fields_.Read(name, value);
  }
  void Read(const char*, absl::Duration&) { ReadTimeout(document_, fields_, spec_); }
  void Read(const char*, SlurmSettings& slurm) { ReadSlurm(document_, fields_, slurm); }
  void Read(const char*, std::optional<NodeShare>& part) {
    ReadNodeShare(document_, fields_, part);
  }
  void Read(const char* name, std::optional<DataPlace>& place) {
    ReadPlaceField(document_, name, fields_, place);
  }
  void Read(const char*, std::vector<Step>& steps) { ReadSteps(fields_, steps); }
  void Read(const char*, std::optional<Sweep>& sweep) { ReadSweepField(document_, fields_, sweep); }
  void Read(const char* name, JobKind& kind) {
    std::string text(Name(kind));
    fields_.Read(name, text);
    const auto known = JobKindFromName(text);
    if (!known) return fields_.Fail("kind is unknown");
    kind = *known;
  }

  const json& document_;
  JsonFields fields_;
  JobSpec& spec_;
};

}  // namespace

std::string ToJson(const JobSpec& spec) { return Dump(JsonOf(spec)); }

json JsonOf(const JobSpec& spec) {
  JobWriter writer(spec);
  VisitFields(writer);
  return writer.Take();
}

absl::Status ReadJobSpec(const json& document, const std::string& path, JobSpec& spec) {
  JobReader reader(document, path, spec);
  VisitFields(reader);
  return reader.Finish();
}

absl::StatusOr<JobSpec> JobSpecFromJson(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const json document, ParseJsonObject(text, "job"));
  JobSpec spec;
  TUTTI_RETURN_IF_ERROR(base::Annotate(ReadJobSpec(document, "", spec), "job"));
  return spec;
}

}  // namespace tutti::spec
