# What nearly every file includes, compiled once: most of a file's compile time is in these. Sources
# still include what they use; the precompiled header only makes that cheap.
find_package(absl REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)

function(tutti_pch name)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cc
       CONTENT "// The precompiled header's own translation unit.\n")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PUBLIC tutti_flags)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

set(tutti_plain_headers
    <algorithm> <array> <atomic> <cstdint> <cstring> <filesystem> <functional> <map> <memory>
    <optional> <set> <span> <string> <thread> <utility> <vector> <nlohmann/json.hpp>
    <absl/status/status.h> <absl/status/statusor.h> <absl/strings/ascii.h> <absl/strings/match.h>
    <absl/strings/numbers.h> <absl/strings/str_cat.h> <absl/strings/str_join.h>
    <absl/strings/str_split.h> <absl/strings/string_view.h> <absl/strings/strip.h>
    <absl/synchronization/mutex.h> <absl/time/clock.h> <absl/time/time.h>
    ${CMAKE_SOURCE_DIR}/src/base/json_text.h ${CMAKE_SOURCE_DIR}/src/base/log_format.h)
tutti_pch(tutti_plain_pch ${tutti_plain_headers})
target_link_libraries(tutti_plain_pch PUBLIC absl::status absl::synchronization fmt::fmt
                      nlohmann_json::nlohmann_json spdlog::spdlog)
if(TUTTI_TESTS)
  # Tests are compiled more often than they run hot.
  set(tutti_test_optimization -Og)
  tutti_pch(tutti_test_pch ${tutti_plain_headers} <gtest/gtest.h> <gmock/gmock.h>)
  target_compile_options(tutti_test_pch PRIVATE ${tutti_test_optimization})
  target_link_libraries(tutti_test_pch PUBLIC absl::status absl::synchronization fmt::fmt
                        nlohmann_json::nlohmann_json spdlog::spdlog GTest::gmock)
endif()
