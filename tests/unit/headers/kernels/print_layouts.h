// Prints which coordinates each thread of a layout holds, as JSON. It needs no engine: layouts only ask which thread they
// run in.
#pragma once
#include <cstdio>
#include <tl/tl.h>

thread_local int tl_engine_thread;

namespace {

bool first_of_all = true;

// Layouts of two dimensions, but for what every thread holds whole, have rows and columns.
template <class Layout> constexpr bool has_rows = Layout::rank == 2 && !tl::IsReplicated<Layout>::value;

template <class Layout> void print_place(int reg) {
  if (!Layout::valid(reg)) {
    std::printf("null");
  } else if constexpr (Layout::rank == 1) {
    std::printf("[%d]", Layout::template coordinate<0>(reg));
  } else if constexpr (Layout::rank == 2) {
    std::printf("[%d,%d]", Layout::template coordinate<0>(reg), Layout::template coordinate<1>(reg));
  } else {
    std::printf("[%d,%d,%d]", Layout::template coordinate<0>(reg), Layout::template coordinate<1>(reg),
                Layout::template coordinate<2>(reg));
  }
}

// {"replica": [a number a thread], "places": [[a coordinate or null for each register] for each thread]
template <class Layout> void print_threads(int threads) {
  std::printf("{\"vector\":%d,\"replica\":[", Layout::vector);
  for (tl_engine_thread = 0; tl_engine_thread < threads; ++tl_engine_thread)
    std::printf("%s%d", tl_engine_thread ? "," : "", Layout::replica());
  std::printf("],\"places\":[");
  for (tl_engine_thread = 0; tl_engine_thread < threads; ++tl_engine_thread) {
    std::printf("%s[", tl_engine_thread ? ",\n" : "");
    for (int reg = 0; reg < Layout::registers; ++reg) {
      if (reg > 0) std::printf(",");
      print_place<Layout>(reg);
    }
    std::printf("]");
  }
  std::printf("]");
}

template <class Layout> void print(const char* name, int threads) {
  std::printf("%s\"%s\":", first_of_all ? "{" : ",\n", name);
  first_of_all = false;
  print_threads<Layout>(threads);
  if constexpr (has_rows<Layout>) {
    std::printf(",\"row_registers\":[");
    for (int reg = 0; reg < Layout::registers; ++reg) std::printf("%s%d", reg ? "," : "", Layout::row_register(reg));
    std::printf("],\"col_registers\":[");
    for (int reg = 0; reg < Layout::registers; ++reg) std::printf("%s%d", reg ? "," : "", Layout::col_register(reg));
    std::printf("],\"rows\":");
    print_threads<tl::Slice<1, Layout>>(threads);
    std::printf("},\"cols\":");
    print_threads<tl::Slice<0, Layout>>(threads);
    std::printf("}");
  }
  std::printf("}");
}

}  // namespace
