# The runtime wing as a library for C++ (docs/cpp/training.md): `cmake --install BUILD --component cpp` puts
# static libraries into lib/, headers into include/tutti and what find_package(tutti) reads into lib/cmake/tutti.
# A room is the target tutti::NAME there. Only these rooms need naming; those that they are made of follow.
include(CMakePackageConfigHelpers)
set(tutti_public_rooms tutti_train tutti_scoring)

# Sets `out` to the rooms among `ARGN` and all that they link.
function(tutti_rooms_below out)
  set(found)
  set(queue ${ARGN})
  while(queue)
    list(POP_FRONT queue target)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" target "${target}")
    if(NOT target MATCHES "^tutti_" OR NOT TARGET ${target} OR target IN_LIST found)
      continue()
    endif()
    get_target_property(imported ${target} IMPORTED)
    if(imported)
      continue()
    endif()
    list(APPEND found ${target})
    get_target_property(linked ${target} INTERFACE_LINK_LIBRARIES)
    if(linked)
      list(APPEND queue ${linked})
    endif()
  endwhile()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

tutti_rooms_below(rooms ${tutti_public_rooms})
foreach(room ${rooms})
  string(REGEX REPLACE "^tutti_" "" name ${room})
  set_target_properties(${room} PROPERTIES EXPORT_NAME ${name})
  get_target_property(folder ${room} SOURCE_DIR)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/src ${folder})
  if(folder MATCHES "^[a-z]")  # not tutti_flags, which has no headers
    get_filename_component(parent include/tutti/${folder} DIRECTORY)
    install(DIRECTORY src/${folder} DESTINATION ${parent} COMPONENT cpp FILES_MATCHING PATTERN "*.h"
            PATTERN "*_fake.h" EXCLUDE PATTERN "*_test_support.h" EXCLUDE
            PATTERN comm/capi EXCLUDE PATTERN comm/negotiation EXCLUDE)  # in libtutti_comm.so alone
  endif()
endforeach()
install(TARGETS ${rooms} EXPORT tutti ARCHIVE DESTINATION lib COMPONENT cpp)
install(EXPORT tutti NAMESPACE tutti:: FILE tutti-targets.cmake DESTINATION lib/cmake/tutti COMPONENT cpp)

configure_package_config_file(cmake/tutti-config.cmake.in ${CMAKE_BINARY_DIR}/tutti-config.cmake
                              INSTALL_DESTINATION lib/cmake/tutti)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tutti-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tutti-config.cmake ${CMAKE_BINARY_DIR}/tutti-config-version.cmake
        cmake/tutti_libtorch.cmake DESTINATION lib/cmake/tutti COMPONENT cpp)
