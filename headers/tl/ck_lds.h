// Tiles in LDS for ck_tile's style: layouts with tl's swizzles as descriptors of ck_tile, and windows over the stages
// of a pipeline. C++17.
#pragma once
#include "ck_base.h"

namespace tl {

// ---- tiles in LDS ---------------------------------------------------------------------------------------------------
// Layouts are functions of the element type: descriptor<T>() maps a tile's coordinates to offsets of elements.

// Row-major; rows are padded by `padding` elements.
template <int padding, int... extents> struct LdsRows {
  template <class T> static CK_TILE_HOST_DEVICE constexpr auto descriptor() {
    using namespace ck_tile;
    constexpr int vector = 16 / static_cast<int>(sizeof(T));
    if constexpr (padding == 0) {
      return make_naive_tensor_descriptor_packed(make_tuple(number<extents>{}...), number<vector>{});
    } else {
      static_assert(sizeof...(extents) == 2, "tiles with padded rows have two dimensions");
      constexpr int lengths[] = {extents...};
      return make_naive_tensor_descriptor(make_tuple(number<lengths[0]>{}, number<lengths[1]>{}),
                                          make_tuple(number<lengths[1] + padding>{}, number<1>{}), number<vector>{},
                                          number<1>{});
    }
  }
};

// Rows in slabs of `span` bytes; the 16-byte chunks of a row are permuted by XOR with row / (128 / span).
template <int span, int rows, int cols> struct LdsSwizzled {
  template <class T> static CK_TILE_HOST_DEVICE constexpr auto descriptor() {
    using namespace ck_tile;
    constexpr int vector = 16 / static_cast<int>(sizeof(T)), chunks = span / 16, slabs = cols / (vector * chunks);
    constexpr int together = 128 / span;  // rows that share 128 bytes
    constexpr auto stored = make_naive_tensor_descriptor_packed(
        make_tuple(number<slabs>{}, number<rows / together>{}, number<together>{}, number<chunks>{}, number<vector>{}),
        number<vector>{});
    constexpr auto swizzled = transform_tensor_descriptor(
        stored,
        make_tuple(make_pass_through_transform(number<slabs>{}),
                   make_xor_transform(make_tuple(number<rows / together>{}, number<chunks>{})),
                   make_pass_through_transform(number<together>{}), make_pass_through_transform(number<vector>{})),
        make_tuple(sequence<0>{}, sequence<1, 3>{}, sequence<2>{}, sequence<4>{}),
        make_tuple(sequence<0>{}, sequence<1, 3>{}, sequence<2>{}, sequence<4>{}));
    return transform_tensor_descriptor(
        swizzled,
        make_tuple(
            make_merge_transform_v3_division_mod(make_tuple(number<rows / together>{}, number<together>{})),
            make_merge_transform_v3_division_mod(make_tuple(number<slabs>{}, number<chunks>{}, number<vector>{}))),
        make_tuple(sequence<1, 2>{}, sequence<0, 3, 4>{}), make_tuple(sequence<0>{}, sequence<1>{}));
  }
};

// A vector of n elements, stored as rows of `span` bytes with that swizzle.
template <int span, int n> struct LdsSwizzledVector {
  template <class T> static CK_TILE_HOST_DEVICE constexpr auto descriptor() {
    using namespace ck_tile;
    constexpr int cols = span / static_cast<int>(sizeof(T)), rows = n / cols;
    return transform_tensor_descriptor(
        LdsSwizzled<span, rows, cols>::template descriptor<T>(),
        make_tuple(make_merge_transform_v3_division_mod(make_tuple(number<rows>{}, number<cols>{}))),
        make_tuple(sequence<0, 1>{}), make_tuple(sequence<0>{}));
  }
};

// The place along k, k_slot, in a tile of operand B whose A is in registers: in MFMA step s, lane group g holds
// k = (s, g, i) of A, digits of `groups` g and `held` i. k_slot = (s / n, g, s % n, i), where n steps fill the 16 bytes
// that one read loads. groups = 1: k_slot = k.
template <int groups_, int held_> struct HeldK {
  static constexpr int groups = groups_, held = held_;
};

// A (k, n) tile whose columns are stored in 16-byte chunks along k_slot, for MFMA operands that read along k.
template <int k, int n, class Interleave, class Order = HeldK<1, 1>> struct LdsTransposed {
  // Elements are addressed by (k, column).
  template <class T> static CK_TILE_HOST_DEVICE constexpr auto descriptor() {
    using namespace ck_tile;
    constexpr int vector = 16 / static_cast<int>(sizeof(T)), steps = vector / Order::held;
    constexpr int outer = k / (vector * Order::groups);
    constexpr auto slots = transform_tensor_descriptor(
        LdsTransposed<k, n, Interleave>::template descriptor<T>(),
        make_tuple(make_unmerge_transform(
                       make_tuple(number<outer>{}, number<Order::groups>{}, number<steps>{}, number<Order::held>{})),
                   make_pass_through_transform(number<n>{})),
        make_tuple(sequence<0>{}, sequence<1>{}), make_tuple(sequence<0, 1, 2, 3>{}, sequence<4>{}));
    return transform_tensor_descriptor(
        slots,
        make_tuple(make_merge_transform_v3_division_mod(
                       make_tuple(number<outer>{}, number<steps>{}, number<Order::groups>{}, number<Order::held>{})),
                   make_pass_through_transform(number<n>{})),
        make_tuple(sequence<0, 2, 1, 3>{}, sequence<4>{}), make_tuple(sequence<0>{}, sequence<1>{}));
  }
};

// The same where k_slot is k. Column (group, t, r), digits of Interleave::count t and 4 r, is line l = (t, group, r):
// MFMA t of a group reads neighbouring lines. Chunk c = k / (elements of 16 bytes) of line l is at line l ^ c of the n
// lines that have chunk c.
template <int k, int n, class Interleave> struct LdsTransposed<k, n, Interleave, HeldK<1, 1>> {
  template <class T> static CK_TILE_HOST_DEVICE constexpr auto descriptor() {
    using namespace ck_tile;
    constexpr int vector = 16 / static_cast<int>(sizeof(T)), chunks = k / vector;
    constexpr int count = Interleave::count, run = 4, groups = n / (count * run);
    constexpr auto stored = make_naive_tensor_descriptor_packed(
        make_tuple(number<chunks>{}, number<n>{}, number<vector>{}), number<vector>{});
    constexpr auto lines = transform_tensor_descriptor(
        stored,
        make_tuple(make_xor_transform(make_tuple(number<chunks>{}, number<n>{})),
                   make_pass_through_transform(number<vector>{})),
        make_tuple(sequence<0, 1>{}, sequence<2>{}), make_tuple(sequence<0, 1>{}, sequence<2>{}));
    constexpr auto instructions = transform_tensor_descriptor(
        lines,
        make_tuple(make_pass_through_transform(number<chunks>{}),
                   make_unmerge_transform(make_tuple(number<count>{}, number<groups>{}, number<run>{})),
                   make_pass_through_transform(number<vector>{})),
        make_tuple(sequence<0>{}, sequence<1>{}, sequence<2>{}),
        make_tuple(sequence<0>{}, sequence<1, 2, 3>{}, sequence<4>{}));
    return transform_tensor_descriptor(
        instructions,
        make_tuple(make_merge_transform_v3_division_mod(make_tuple(number<chunks>{}, number<vector>{})),
                   make_merge_transform_v3_division_mod(make_tuple(number<groups>{}, number<count>{}, number<run>{}))),
        make_tuple(sequence<0, 4>{}, sequence<2, 1, 3>{}), make_tuple(sequence<0>{}, sequence<1>{}));
  }
};

// The layout whose descriptor the operands of MFMAs are read by: along k_slot where a layout has it.
template <class Layout> struct OperandLayout {
  using type = Layout;
};
template <int k, int n, class Interleave, class Order> struct OperandLayout<LdsTransposed<k, n, Interleave, Order>> {
  using type = LdsTransposed<k, n, Interleave>;
};

// Elements behind the last one: the padding of the last row.
template <class Layout> constexpr int padding_behind = 0;
template <int padding, int... extents> constexpr int padding_behind<LdsRows<padding, extents...>> = padding;

// A tile in LDS; `Layout` is one of the above.
template <class T, class Layout_> struct alignas(16) LdsTile {
  using Element = T;
  using Layout = Layout_;
  static constexpr int elements = Layout::template descriptor<T>().get_element_space_size() + padding_behind<Layout>;
  T data[elements];

  static CK_TILE_HOST_DEVICE constexpr auto descriptor() { return Layout::template descriptor<T>(); }
  CK_TILE_DEVICE auto view() {
    return ck_tile::make_tensor_view<ck_tile::address_space_enum::lds>(window_data(data), descriptor());
  }
  // One element; any thread.
  template <class... Indices> CK_TILE_DEVICE T& operator()(Indices... indices) {
    return data[descriptor().calculate_offset(ck_tile::make_tuple(static_cast<ck_tile::index_t>(indices)...))];
  }
};

// A tile in LDS, or a part of it, as the threads of a distribution access it in any of the tile's stages: coordinates
// are computed once, a stage moves the base address.
template <class Tile, class Window> struct StagedWindow {
  Tile* stages;
  Window window;

  CK_TILE_DEVICE Window& operator[](int stage) {
    window.set_bottom_tensor_view_data_ptr(window_data(stages[stage].data));
    return window;
  }
};

// The offsets, in elements, of a tile in LDS by thread and register of a distribution. The layouts above, of extents
// that are powers of two, combine bits by XOR: of(thread, register) = of(thread, 0) ^ of(0, register).
template <class Encoding, class Descriptor> struct LdsOffsets;
template <class R, class... H, class... PY, class Descriptor>
struct LdsOffsets<ck_tile::tile_distribution_encoding<R, ck_tile::tuple<H...>, PY...>, Descriptor> {
  using Encoding = ck_tile::tile_distribution_encoding<R, ck_tile::tuple<H...>, PY...>;
  using Distribution = std::decay_t<decltype(ck_tile::make_static_tile_distribution(Encoding{}))>;
  static constexpr int registers = Distribution{}.get_ys_to_d_descriptor().get_element_space_size();
  static constexpr int numbers = (digits_product<R> * ... * digits_product<H>), threads = numbers / registers;

  static CK_TILE_HOST_DEVICE constexpr int of(int thread, int register_) {
    using namespace ck_tile;
    constexpr int of_threads = Distribution::NDimP, of_registers = Distribution::NDimY;
    array<index_t, of_threads + of_registers> at;
    if constexpr (of_threads == 2) at(0) = thread / 64;
    at(of_threads - 1) = thread % 64;
    static_for<of_registers, 0, -1>{}([&](auto behind) {
      constexpr int length = Distribution{}.get_ys_to_d_descriptor().get_length(number<behind - 1>{});
      at(of_threads + behind - 1) = register_ % length;
      register_ /= length;
    });
    return Descriptor{}.calculate_offset(Distribution{}.get_ps_ys_to_xs_adaptor().calculate_bottom_index(at));
  }
  // Of numbers that have one bit, of the thread or, above these, of the register: each a constant, evaluated once.
  template <int number> static constexpr int of_number = of(number % threads, number / threads);
  template <size_t... bit> static constexpr auto of_each_bit(std::index_sequence<bit...>) {
    return ck_tile::array<int, sizeof...(bit)>{of_number<1 << bit>...};
  }
  static constexpr auto bits = of_each_bit(std::make_index_sequence<31 - __builtin_clz(numbers)>{});

  static CK_TILE_HOST_DEVICE constexpr bool combine_by_xor() {
    constexpr int extents[] = {digits_product<H>...};
    bool same = true;
    ck_tile::static_for<0, sizeof...(H), 1>{}(
        [&](auto dim) { same = same && Descriptor{}.get_length(dim) == extents[dim.value]; });
    if constexpr ((numbers & (numbers - 1)) == 0) {
      int combined = 0;
      for (int bit = 0; bit < bits.size(); ++bit) combined ^= bits[bit];
      return same && of_number<0> == 0 &&
             of_number<numbers - 1> == combined;  // of padded rows a sum, which has carries
    } else {
      return false;
    }
  }
  static CK_TILE_HOST_DEVICE constexpr int of_register(int register_) {
    int combined = 0;
    for (int bit = 0; bit < bits.size(); ++bit)
      if (register_ * threads >> bit & 1) combined ^= bits[bit];
    return combined;
  }
  // The bits that the offsets of register 0 have in any thread.
  static CK_TILE_HOST_DEVICE constexpr int bits_of_threads() {
    int found = 0;
    for (int bit = 0; 1 << bit < threads; ++bit) found |= bits[bit];
    return found;
  }
  // How many consecutive registers of a thread are neighbours in LDS, aligned to their number, at most `most`.
  static CK_TILE_HOST_DEVICE constexpr int vector(int most) {
    int length = 1, others = bits_of_threads();
    while (length < registers && length < most && of_register(length) == length) length *= 2;
    for (int register_ = length; register_ < registers; register_ *= 2) others |= of_register(register_);
    while (others % length != 0) length /= 2;
    return length;
  }
};

// A tile in LDS whose offsets combine by XOR, as the threads of a distribution access it in any of the tile's stages,
// by load_tile and store_tile. The accesses of a thread are at its offset of register 0, XORed with constants.
// Bits of these that no thread's offset has are an immediate offset of the instruction, so one address per value of the
// other bits stays in a register; ck_tile's windows have one per access.
template <class Tile, class Encoding, class Descriptor> struct LdsWindow {
  using Offsets = LdsOffsets<Encoding, Descriptor>;
  using Element = typename InWindows<typename Tile::Element>::type;
  using DistributedTensor = DistributedTile<Element, Encoding>;
  static constexpr int vector = Offsets::vector(16 / static_cast<int>(sizeof(Element)));
  using Vector = Element __attribute__((ext_vector_type(vector)));
  Tile* stages;
  int offset;  // of this thread's register 0
  int stage = 0;

  CK_TILE_DEVICE LdsWindow& operator[](int stage_) {
    stage = stage_;
    return *this;
  }
  template <int access> CK_TILE_DEVICE Vector& at(ck_tile::number<access>) const {
    constexpr int of_register = Offsets::of_register(access * vector), shared = Offsets::bits_of_threads();
    auto* const start = window_data(stages[stage].data) + (offset ^ (of_register & shared));
    return *reinterpret_cast<Vector*>(start + (of_register & ~shared));
  }
  template <class... Options> CK_TILE_DEVICE DistributedTensor load(Options...) const {
    DistributedTensor tile;
    ck_tile::static_for<0, Offsets::registers / vector, 1>{}([&](auto access) {
      const Vector elements = at(access);
      __builtin_memcpy(&tile.get_thread_buffer()(ck_tile::number<access * vector>{}), &elements, sizeof elements);
    });
    return tile;
  }
  CK_TILE_DEVICE void store(const DistributedTensor& tile) const {
    ck_tile::static_for<0, Offsets::registers / vector, 1>{}([&](auto access) {
      Vector elements;
      __builtin_memcpy(&elements, &tile.get_thread_buffer()[ck_tile::number<access * vector>{}], sizeof elements);
      at(access) = elements;
    });
  }
};
template <class Tile, class Encoding, class Descriptor>
CK_TILE_DEVICE void store_tile(const LdsWindow<Tile, Encoding, Descriptor>& window,
                               const typename LdsWindow<Tile, Encoding, Descriptor>::DistributedTensor& tile) {
  window.store(tile);
}

// The window on a tile, or on the part that begins at `origin`.
template <class Tile, class Encoding, class Descriptor, class... Origin>
CK_TILE_DEVICE auto window_on(Tile* stages, Encoding, Descriptor, Origin... origin) {
  using namespace ck_tile;
  constexpr auto distribution = make_static_tile_distribution(Encoding{});
  if constexpr (sizeof...(Origin) == 0 && LdsOffsets<Encoding, Descriptor>::combine_by_xor()) {
    return LdsWindow<Tile, Encoding, Descriptor>{stages, Descriptor{}.calculate_offset(distribution.calculate_index())};
  } else {
    const auto view = make_tensor_view<address_space_enum::lds>(window_data(stages[0].data), Descriptor{});
    const multi_index<Descriptor::get_num_of_dimension()> start = {origin...};  // without an origin zeros
    auto window = make_tile_window(view, distribution.get_lengths(), start, distribution);
    return StagedWindow<Tile, decltype(window)>{stages, window};
  }
}
// For stores, and loads of other than operands.
template <class Tile, class Encoding, class... Origin>
CK_TILE_DEVICE auto staged_window(Tile* stages, Encoding encoding, Origin... origin) {
  return window_on(stages, encoding, Tile::descriptor(), origin...);
}
// For the operands of MFMAs, whose coordinate along k is k_slot.
template <class Tile, class Encoding, class... Origin>
CK_TILE_DEVICE auto operand_window(Tile* stages, Encoding encoding, Origin... origin) {
  using Layout = typename OperandLayout<typename Tile::Layout>::type;
  return window_on(stages, encoding, Layout::template descriptor<typename Tile::Element>(), origin...);
}

}  // namespace tl
