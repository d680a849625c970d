// Reads the files that say what a Python environment holds: conda's YAML, pip's requirements,
// pyproject's dependencies, and, of a Dockerfile, what pip installs. Each becomes a list of PyPI
// requirements that remember their lines, and of variables; what cannot be had is an error with its
// line. Hostile text is safe. Inside the room spec only.
#pragma once

#include <filesystem>
#include <string>

#include "absl/strings/string_view.h"
#include "spec/site/read_context.h"
#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/job.h"

namespace tutti::spec {

// A file under the name that messages call it, and where it lies.
struct NamedFile {
  std::string shown;  // "conda.yaml"
  std::filesystem::path path;
};

// Returns `path` as the job file writes it, below the context's base.
NamedFile FileBeside(absl::string_view path, const ReadContext& context);

// Reads {name, channels, variables: {A: 1}, dependencies: [python=3.8, numpy=1.21, pip:
// [torch>=1.10]]}.
void ReadCondaMapping(const YamlNode& root, const NamedFile& file, const ReadContext& context,
                      Environment& environment, Diagnostics& diagnostics);

// Reads one of conda's packages: "numpy=1.21", "conda-forge::pytorch", "python=3.8".
void ReadCondaPackage(absl::string_view text, int line, const NamedFile& file,
                      const ReadContext& context, Environment& environment,
                      Diagnostics& diagnostics);

// Reads requirements.txt, with the files that it names by -r.
void ReadRequirements(absl::string_view text, const NamedFile& file, const ReadContext& context,
                      Environment& environment, Diagnostics& diagnostics);

// Reads the dependencies of pyproject.toml's [project], and the Python that it requires.
void ReadPyproject(absl::string_view text, const NamedFile& file, const ReadContext& context,
                   Environment& environment, Diagnostics& diagnostics);

// Reads one requirement or option of pip, as it stands in such a file or behind `pip install`.
void ReadPipLine(absl::string_view line, int number, const NamedFile& file,
                 const ReadContext& context, Environment& environment, Diagnostics& diagnostics);

// Sets a variable that such a file sets for the job's processes; `what` is it in messages, "ENV A".
// One that says where programs and libraries are is left out with a warning: the file's are not
// here.
void SetVariable(absl::string_view what, const std::string& name, const std::string& value,
                 int line, Environment& environment, Diagnostics& diagnostics);

struct Dockerfile {
  std::string image;  // that its last stage begins with, by way of others; empty if there is none
  int line = 1;       // of that FROM
  // The first thing that only a build can do: "docker/Dockerfile:6: RUN apt-get"; or empty.
  std::string needs_build;
};

// Reads what the file's last stage is made of. Whatever the file does beside installing Python
// packages and setting variables is a warning. `environment` gets the files that it copies.
Dockerfile ReadDockerfile(absl::string_view text, const NamedFile& file, const ReadContext& context,
                          Environment& environment, Diagnostics& diagnostics);

}  // namespace tutti::spec
