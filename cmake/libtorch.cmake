# libtorch from the PyPI wheel; tools/setup puts it where TUTTI_LIBTORCH points.
set(TUTTI_LIBTORCH "$ENV{HOME}/.cache/tutti/libtorch-2.11.0/torch" CACHE PATH
    "Folder of the torch Python package (has include/ and lib/)")
if(NOT EXISTS ${TUTTI_LIBTORCH}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "no libtorch in ${TUTTI_LIBTORCH}: run tools/setup build, or configure with "
                      "-DTUTTI_LIBTORCH=FOLDER or -DTUTTI_RUNTIME=OFF")
endif()

include(tutti_libtorch)

# torch/torch.h costs 17 s a file; every room that includes it reuses this one precompiled header.
file(WRITE ${CMAKE_BINARY_DIR}/torch_pch.cc "// The precompiled header's own translation unit.\n")
add_library(tutti_torch_pch OBJECT ${CMAKE_BINARY_DIR}/torch_pch.cc)
target_link_libraries(tutti_torch_pch PUBLIC tutti_flags tutti_base tutti_libtorch)
target_precompile_headers(tutti_torch_pch PRIVATE <torch/torch.h> <nlohmann/json.hpp>
                          <string> <vector> <map> <memory> <functional> <absl/status/statusor.h>)
