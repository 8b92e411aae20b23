// Includes for kernels in ck_tile's style: ck_tile's tiles, tl's launchers and scalar functions, and functions that
// ck_tile lacks: tiles in LDS with tl's swizzles, windows over pipeline stages, a block GEMM whose warps own contiguous
// parts of C, reductions across warps. C++17. Besides ck_tile's public names, reduce_across_warps uses two of its
// details, get_partition_index and does_p_own_r_ of an encoding.
#pragma once
#include "common/offsets.h"
#include "tl.h"

// Conversions to bfloat16 round to nearest even. Out-of-bounds loads move their offset past the buffer's end: one
// select per access instead of one per dword.
#ifndef CK_TILE_FLOAT_TO_BFLOAT16_DEFAULT
#define CK_TILE_FLOAT_TO_BFLOAT16_DEFAULT 0  // CK_TILE_FLOAT_TO_BFLOAT16_STANDARD
#endif
#ifndef CK_TILE_EXPERIMENTAL_USE_BUFFER_LOAD_OOB_CHECK_OFFSET_TRICK
#define CK_TILE_EXPERIMENTAL_USE_BUFFER_LOAD_OOB_CHECK_OFFSET_TRICK 1
#endif
#include <ck_tile/core.hpp>
#include <ck_tile/ops/gemm/warp/warp_gemm.hpp>
#include <ck_tile/ops/gemm/warp/warp_gemm_dispatcher.hpp>
#include <ck_tile/ops/reduce/block/block_reduce.hpp>

static_assert(CK_TILE_FLOAT_TO_BFLOAT16_DEFAULT == CK_TILE_FLOAT_TO_BFLOAT16_STANDARD,
              "conversions to bfloat16 round to nearest even");
static_assert(!CK_TILE_USE_PK_FP16_TILE_CAST, "cast_tile would round toward zero");
static_assert(CK_TILE_EXPERIMENTAL_BLOCK_SYNC_LDS_WITHOUT_SYNC_VMEM,
              "block_sync_lds would wait for the loads of the next tile");

namespace tl {

// ---- tensors --------------------------------------------------------------------------------------------------------
// Elements per access of a tensor whose rows have this alignment.
template <class Alignment, class T>
constexpr int vector_length = Alignment::alignment >= 16 ? 16 / static_cast<int>(sizeof(T)) : 1;

// Whether an encoding's digits multiply to these extents, dimension by dimension; their order is not checked.
template <class Sequence> constexpr int digits_product = 0;
template <ck_tile::index_t... lengths>
constexpr int digits_product<ck_tile::sequence<lengths...>> = (1 * ... * static_cast<int>(lengths));
template <class Encoding, int... extents> constexpr bool has_extents = false;
template <class R, class... H, class PMajor, class PMinor, class YMajor, class YMinor, int... extents>
constexpr bool has_extents<ck_tile::tile_distribution_encoding<R, ck_tile::tuple<H...>, PMajor, PMinor, YMajor, YMinor>,
                           extents...> = sizeof...(H) == sizeof...(extents) && ((digits_product<H> == extents) && ...);

// The type in which windows move elements: ck_tile's buffers know no unsigned integers and no bool.
template <class T> struct InWindows {
  using type = T;
};
template <> struct InWindows<uint8_t> {
  using type = int8_t;
};
template <> struct InWindows<bool> {
  using type = int8_t;
};
template <> struct InWindows<uint32_t> {
  using type = int32_t;
};
template <class T> CK_TILE_HOST_DEVICE auto* window_data(T* data) {
  return reinterpret_cast<typename InWindows<T>::type*>(data);
}
template <class T> CK_TILE_HOST_DEVICE auto* window_data(const T* data) {
  return reinterpret_cast<const typename InWindows<T>::type*>(data);
}

// The view with bounds checks on both sides of the dimensions that are `clipped`: pad_tensor_view checks ends only.
template <class View, ck_tile::index_t... clipped>
CK_TILE_DEVICE auto clip_tensor_view(const View& view, ck_tile::sequence<clipped...>) {
  using namespace ck_tile;
  constexpr int rank = sizeof...(clipped);
  constexpr sequence<clipped...> flags;
  const auto transforms = generate_tuple(
      [&](auto dim) {
        const auto length = view.get_tensor_descriptor().get_length(dim);
        return conditional_expr<flags.at(dim)>(make_pad_transform(length, number<0>{}, number<0>{}),
                                               make_pass_through_transform(length));
      },
      number<rank>{});
  const auto dims = generate_tuple([](auto dim) { return sequence<dim.value>{}; }, number<rank>{});
  return transform_tensor_view(view, transforms, dims, dims);
}

// The type of a tile that the threads hold in registers by `Layout`, a tile_distribution_encoding.
template <class T, class Layout>
using DistributedTile =
    decltype(ck_tile::make_static_distributed_tensor<T>(ck_tile::make_static_tile_distribution(Layout{})));

// ---- tiles in LDS ---------------------------------------------------------------------------------------------------
// Layouts are functions of the element type: descriptor<T>() maps a tile's coordinates to offsets of elements.

// Row-major; rows are padded by `padding` elements.
template <int padding, int... extents> struct LdsRows {
  template <class T> static CK_TILE_HOST_DEVICE constexpr auto operand_descriptor() { return descriptor<T>(); }
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
  template <class T> static CK_TILE_HOST_DEVICE constexpr auto operand_descriptor() { return descriptor<T>(); }
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
  template <class T> static CK_TILE_HOST_DEVICE constexpr auto operand_descriptor() { return descriptor<T>(); }
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
// k = (s, g, i) of A, digits of `groups` g and `held` i. k_slot = (s / n, g, s % n, i), where 16 bytes have the values of
// n steps, so that one read has those of n steps. groups = 1: k_slot = k.
template <int groups_, int held_> struct HeldK {
  static constexpr int groups = groups_, held = held_;
};

// A (k, n) tile whose columns are stored in 16-byte chunks along k, for MFMA operands that read along k. Column
// (group, t, r), digits of Interleave::count t and 4 r, is line l = (t, group, r): MFMA t of a group reads neighbouring
// lines. Chunk c = k_slot / (elements of 16 bytes) of line l is at line l ^ c of the n lines that have chunk c.
template <int k, int n, class Interleave, class Order = HeldK<1, 1>> struct LdsTransposed {
  static constexpr int count = Interleave::count, run = 4;

  // Of the coordinates (k_slot, column).
  template <class T> static CK_TILE_HOST_DEVICE constexpr auto operand_descriptor() {
    using namespace ck_tile;
    constexpr int vector = 16 / static_cast<int>(sizeof(T)), chunks = k / vector;
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
                   make_unmerge_transform(make_tuple(number<count>{}, number<n / (count * run)>{}, number<run>{})),
                   make_pass_through_transform(number<vector>{})),
        make_tuple(sequence<0>{}, sequence<1>{}, sequence<2>{}),
        make_tuple(sequence<0>{}, sequence<1, 2, 3>{}, sequence<4>{}));
    return transform_tensor_descriptor(
        instructions,
        make_tuple(make_merge_transform_v3_division_mod(make_tuple(number<chunks>{}, number<vector>{})),
                   make_merge_transform_v3_division_mod(
                       make_tuple(number<n / (count * run)>{}, number<count>{}, number<run>{}))),
        make_tuple(sequence<0, 4>{}, sequence<2, 1, 3>{}), make_tuple(sequence<0>{}, sequence<1>{}));
  }
  // Of the coordinates (k, column).
  template <class T> static CK_TILE_HOST_DEVICE constexpr auto descriptor() {
    using namespace ck_tile;
    constexpr auto ordered = operand_descriptor<T>();
    if constexpr (Order::groups == 1) {
      return ordered;
    } else {
      constexpr int vector = 16 / static_cast<int>(sizeof(T)), steps = vector / Order::held;
      constexpr int outer = k / (vector * Order::groups);
      constexpr auto digits = transform_tensor_descriptor(
          ordered,
          make_tuple(make_unmerge_transform(
                         make_tuple(number<outer>{}, number<Order::groups>{}, number<steps>{}, number<Order::held>{})),
                     make_pass_through_transform(number<n>{})),
          make_tuple(sequence<0>{}, sequence<1>{}), make_tuple(sequence<0, 1, 2, 3>{}, sequence<4>{}));
      return transform_tensor_descriptor(
          digits,
          make_tuple(make_merge_transform_v3_division_mod(
                         make_tuple(number<outer>{}, number<steps>{}, number<Order::groups>{}, number<Order::held>{})),
                     make_pass_through_transform(number<n>{})),
          make_tuple(sequence<0, 2, 1, 3>{}, sequence<4>{}), make_tuple(sequence<0>{}, sequence<1>{}));
    }
  }
};

// A tile in LDS; `Layout` is one of the above.
template <class T, class Layout_> struct alignas(16) LdsTile {
  using Element = T;
  using Layout = Layout_;
  static constexpr int elements = Layout::template descriptor<T>().get_element_space_size();
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

// A tile in LDS, or the part of it that begins at `origin`, as the threads of a distribution access it, in any of the
// tile's stages: coordinates are computed once, a stage moves the base address.
template <class Tile, class Window> struct StagedWindow {
  Tile* stages;
  Window window;

  CK_TILE_DEVICE Window& operator[](int stage) {
    window.set_bottom_tensor_view_data_ptr(window_data(stages[stage].data));
    return window;
  }
};

// The offsets, in elements, of a tile in LDS by thread and register of a distribution. The layouts above, of extents that
// are powers of two, combine bits by XOR: of(thread, register) = of(thread, 0) ^ of(0, register).
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

// A tile in LDS whose bits combine by XOR, as the threads of a distribution access it in any of the tile's stages, by
// ck_tile's load_tile, and store_tile. The accesses of a thread are at its offset of register 0, XORed with constants.
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
      ck_tile::static_for<0, vector, 1>{}(
          [&](auto i) { tile.get_thread_buffer()(ck_tile::number<access * vector + i>{}) = elements[i.value]; });
    });
    return tile;
  }
  CK_TILE_DEVICE void store(const DistributedTensor& tile) const {
    ck_tile::static_for<0, Offsets::registers / vector, 1>{}([&](auto access) {
      Vector elements;
      ck_tile::static_for<0, vector, 1>{}(
          [&](auto i) { elements[i.value] = tile.get_thread_buffer()[ck_tile::number<access * vector + i>{}]; });
      at(access) = elements;
    });
  }
};
template <class Tile, class Encoding, class Descriptor>
CK_TILE_DEVICE void store_tile(const LdsWindow<Tile, Encoding, Descriptor>& window,
                               const typename LdsWindow<Tile, Encoding, Descriptor>::DistributedTensor& tile) {
  window.store(tile);
}

template <class Tile, class Encoding, class Descriptor, class... Origin>
CK_TILE_DEVICE auto window_on(Tile* stages, Encoding, Descriptor, Origin... origin) {
  using namespace ck_tile;
  constexpr auto distribution = make_static_tile_distribution(Encoding{});
  if constexpr (sizeof...(Origin) == 0 && LdsOffsets<Encoding, Descriptor>::combine_by_xor()) {
    return LdsWindow<Tile, Encoding, Descriptor>{stages, Descriptor{}.calculate_offset(distribution.calculate_index())};
  } else {
    const auto view = make_tensor_view<address_space_enum::lds>(window_data(stages[0].data), Descriptor{});
    auto window = [&] {
      if constexpr (sizeof...(Origin) > 0) {
        return make_tile_window(view, distribution.get_lengths(), multi_index<sizeof...(Origin)>{origin...},
                                distribution);
      } else {
        const auto zeros = generate_tuple([](auto) { return 0; }, number<Descriptor::get_num_of_dimension()>{});
        return make_tile_window(view, distribution.get_lengths(), to_multi_index(zeros), distribution);
      }
    }();
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
  using Layout = typename Tile::Layout;
  return window_on(stages, encoding, Layout::template operand_descriptor<typename Tile::Element>(), origin...);
}

// ---- warp GEMMs -----------------------------------------------------------------------------------------------------
// The warp GEMM of an instruction with a transposed C, for instructions of which WarpGemmMfmaDispatcher has none. The
// instruction's first operand is B.
template <class Instruction>
using TransposedWarpGemm = ck_tile::WarpGemmImpl<ck_tile::WarpGemmAtrributeMfmaTransposedCDistribution<Instruction>>;

// ---- block GEMM -----------------------------------------------------------------------------------------------------
// C += A B of tiles in registers, by warp GEMMs with TransposeC whose warps own contiguous parts of C: ck_tile's block
// GEMMs distribute single instructions to warps round-robin. Registers: A (m, k), B (group, t, k), C (m, group, q, t,
// r): Interleave::count instructions t share a group of columns, in which a lane holds runs of neighbours. All threads.
template <class WarpGemm, int K, class Interleave = Interleave<1>, class C, class A, class B>
CK_TILE_DEVICE void block_gemm(C& c, const A& a, const B& b) {
  using namespace ck_tile;
  using AWarp = typename WarpGemm::AWarpTensor;
  using BWarp = typename WarpGemm::BWarpTensor;
  using CWarp = typename WarpGemm::CWarpTensor;
  constexpr int in_a = AWarp::get_thread_buffer_size(), in_b = BWarp::get_thread_buffer_size();
  constexpr int in_c = CWarp::get_thread_buffer_size(), run = 4, k = K / WarpGemm::kK, count = Interleave::count;
  constexpr int m = A::get_thread_buffer_size() / (k * in_a), n = B::get_thread_buffer_size() / (k * in_b);
  static_assert(K % WarpGemm::kK == 0 && n % count == 0 && C::get_thread_buffer_size() == m * n * in_c,
                "the tiles are operands of one product");
  static_for<0, k, 1>{}([&](auto step) {
    static_for<0, m, 1>{}([&](auto row) {
      AWarp a_warp;
      static_for<0, in_a, 1>{}([&](auto e) {
        a_warp.get_thread_buffer()(e) = a.get_thread_buffer()[number<(row * k + step) * in_a + e>{}];
      });
      static_for<0, n, 1>{}([&](auto column) {
        constexpr int group = column / count, t = column % count;
        BWarp b_warp;
        CWarp c_warp;
        static_for<0, in_b, 1>{}([&](auto e) {
          b_warp.get_thread_buffer()(e) = b.get_thread_buffer()[number<(column * k + step) * in_b + e>{}];
        });
        const auto place = [=](auto e) {
          return number<(row * n + group * count) * in_c + (e / run * count + t) * run + e % run>{};
        };
        static_for<0, in_c, 1>{}([&](auto e) { c_warp.get_thread_buffer()(e) = c.get_thread_buffer()[place(e)]; });
        WarpGemm{}(c_warp, a_warp, b_warp);
        static_for<0, in_c, 1>{}([&](auto e) { c.get_thread_buffer()(place(e)) = c_warp.get_thread_buffer()[e]; });
      });
    });
  });
}

// ---- reductions -----------------------------------------------------------------------------------------------------
// Functions for block_tile_reduce, besides ck_tile's ReduceOp::Add: NaN and a number give the number.
template <class Op> struct Combine {
  template <class T> CK_TILE_DEVICE T operator()(T a, T b) const { return Op::combine(a, Op::of(b)); }
};
using Maximum = Combine<ReduceMax>;
using Minimum = Combine<ReduceMin>;
using AbsSum = Combine<ReduceAbsSum>;
using AbsMaximum = Combine<ReduceAbsMax>;

// Places of a tile at or beyond `extent` of dimension `dim` become `value`: ck_tile's set_tile_if has two dimensions.
template <int dim, class Tile, class T> CK_TILE_DEVICE void set_tile_beyond(Tile& tile, int extent, T value) {
  using namespace ck_tile;
  sweep_tile(tile, [&](auto at) {
    const auto indices = get_x_indices_from_distributed_indices(Tile::get_tile_distribution(), at);
    if (indices[number<dim>{}] >= extent) tile(at) = value;
  });
}

// block_tile_reduce of dimension `dim` of a tile of any rank: ck_tile's reduces the second of two. Of a tile of one
// dimension `into` is of OneValue.
template <int dim, class Into, class Tile, class Function>
CK_TILE_DEVICE void block_tile_reduce_dimension(Into& into, const Tile& tile, const Function& f) {
  using namespace ck_tile;
  constexpr int rank = Tile::get_num_of_dimension();
  sweep_tile(tile, [&](auto at) {
    if constexpr (rank == 1) {
      auto value = into.get_thread_buffer()[number<0>{}];
      into.get_thread_buffer()(number<0>{}) = f(value, tile[at]);
    } else {
      constexpr auto kept =
          generate_tuple([](auto d) { return decltype(at){}[number<(d < dim ? d : d + 1)>{}]; }, number<rank - 1>{});
      auto value = into[kept];
      into(kept) = f(value, tile[at]);
    }
  });
}

// The distribution of one value of which every thread of the block holds a part, or a copy.
template <int threads>
using OneValue = std::conditional_t<
    (threads > 64),
    ck_tile::tile_distribution_encoding<ck_tile::sequence<threads / 64, 64>, ck_tile::tuple<ck_tile::sequence<1>>,
                                        ck_tile::tuple<ck_tile::sequence<0>, ck_tile::sequence<0>>,
                                        ck_tile::tuple<ck_tile::sequence<0>, ck_tile::sequence<1>>,
                                        ck_tile::sequence<1>, ck_tile::sequence<0>>,
    ck_tile::tile_distribution_encoding<ck_tile::sequence<64>, ck_tile::tuple<ck_tile::sequence<1>>,
                                        ck_tile::tuple<ck_tile::sequence<0>>, ck_tile::tuple<ck_tile::sequence<0>>,
                                        ck_tile::sequence<1>, ck_tile::sequence<0>>>;

// Combines the values that warps hold for the same row: each warp writes its own to LDS, all threads read all. All
// threads of the block; a barrier before and after the reads.
template <class Rows, class T, int size, class Function>
CK_TILE_DEVICE void reduce_across_warps(Rows& rows, T (&workspace)[size], const Function& f) {
  using namespace ck_tile;
  using Encoding = typename Rows::StaticTileDistribution::DstrEncode;
  constexpr auto distribution = Rows::get_tile_distribution();
  constexpr int extent = distribution.get_lengths()[number<0>{}], parts = size / extent;
  const auto rs = distribution.calculate_rs_index_from_ps_index(detail::get_partition_index(distribution));
  int part = 0;
  static_for<0, Encoding::NDimR, 1>{}([&](auto r) {
    if constexpr (Encoding::detail::does_p_own_r_[0][r]) part = part * Encoding::rs_lengths_[r] + rs[r];
  });
  const auto row_of = [&](auto i) { return get_x_indices_from_distributed_indices(distribution, i)[number<0>{}]; };
  sweep_tile(rows, [&](auto i) { workspace[part * extent + row_of(i)] = rows(i); });
  block_sync_lds();
  sweep_tile(rows, [&](auto i) {
    T found = workspace[row_of(i)];
    TL_UNROLL
    for (int other = 1; other < parts; ++other) found = f(found, workspace[other * extent + row_of(i)]);
    rows(i) = found;
  });
  block_sync_lds();
}

// ---- packed dot products --------------------------------------------------------------------------------------------
// sum + the four 2-bit numbers of a byte, the lowest bits first, less `less` each, times y[0] to y[3]: v_dot4. y is
// aligned to 4 bytes. [CDNA3 ISA, "VOP3P: V_DOT4_I32_I8"]
CK_TILE_DEVICE int dot_of_quarters(uint8_t quarters, int less, const int8_t* y, int sum) {
  const uint32_t four = *reinterpret_cast<const uint32_t*>(y);
  const uint32_t halves = (quarters | quarters << 12) & 0x000f000f;
  const uint32_t bytes = (halves | halves << 6) & 0x03030303;
  return dot_of_bytes(bytes, four, sum - less * dot_of_bytes(0x01010101, four, 0));
}

// ---- votes ----------------------------------------------------------------------------------------------------------
// Whether an element of two tiles of one distribution differs, or is infinite, in any thread of the wave. Whole waves.
template <class Tile> CK_TILE_DEVICE bool any_changed(const Tile& a, const Tile& b) {
  using namespace ck_tile;
  bool found = false;
  static_for<0, Tile::get_thread_buffer_size(), 1>{}([&](auto i) {
    const auto x = a.get_thread_buffer()[i];
    found = found || x != b.get_thread_buffer()[i] || tl::abs(x) == infinity<std::decay_t<decltype(x)>>;
  });
  return ballot(found) != 0;
}

// The registers of an accumulator as vectors of 4, as MFMA writes them: of single values that are merged behind a
// branch clang 19 copies all to other registers.
template <class Tile> struct RunsOf {
  using Run = float __attribute__((ext_vector_type(4)));
  static constexpr int count = Tile::get_thread_buffer_size() / 4;
  Run runs[count];

  CK_TILE_DEVICE explicit RunsOf(const Tile& tile) {
    ck_tile::static_for<0, 4 * count, 1>{}([&](auto i) { runs[i / 4][i % 4] = tile.get_thread_buffer()[i]; });
  }
  // The empty assembly takes whole vectors, so that the compiler merges no single values in front of it.
  CK_TILE_DEVICE void keep_whole() {
    TL_UNROLL
    for (int i = 0; i < count; ++i) asm("" : "+v"(runs[i]));
  }
  CK_TILE_DEVICE void store_to(Tile& tile) const {
    ck_tile::static_for<0, 4 * count, 1>{}([&](auto i) { tile.get_thread_buffer()(i) = runs[i / 4][i % 4]; });
  }
};

// Multiplies the rows of an accumulator by `factor` where `wanted` holds, which is the same for all lanes of the wave.
// Whole waves.
template <class Tile, class Rows> CK_TILE_DEVICE void scale_rows_if(bool wanted, Tile& tile, const Rows& factor) {
  using namespace ck_tile;
  RunsOf<Tile> values(tile);
  constexpr int in_row = values.count / Rows::get_thread_buffer_size();
  static_assert(in_row * Rows::get_thread_buffer_size() == values.count,
                "the registers of a row are one after another");
  if (wanted)
    static_for<0, values.count, 1>{}(
        [&](auto run) { values.runs[run] *= factor.get_thread_buffer()[number<run / in_row>{}]; });
  values.store_to(tile);
}

// change(tile) of an accumulator, where `wanted` holds.
template <class Tile, class Change> CK_TILE_DEVICE void change_if(bool wanted, Tile& tile, const Change& change) {
  RunsOf<Tile> values(tile);
  if (wanted) {
    change(tile);
    values = RunsOf<Tile>(tile);
  }
  values.keep_whole();
  values.store_to(tile);
}

// ---- conversions ----------------------------------------------------------------------------------------------------
// cast_tile of floats to halves, two at a time, rounded to nearest even: ck_tile's converts single values and packs
// pairs of them by another instruction.
template <class Half, class Tile> CK_TILE_DEVICE auto cast_tile(const Tile& tile) {
  using namespace ck_tile;
  static_assert(std::is_same_v<Half, half> && std::is_same_v<typename Tile::DataType, float>);
  constexpr int count = Tile::get_thread_buffer_size();
  auto result = make_static_distributed_tensor<half>(Tile::get_tile_distribution());
  static_for<0, count / 2, 1>{}([&](auto i) {
    const auto pair = tile.get_thread_buffer().template get_as<array<float, 2>>(i);
    result.get_thread_buffer().template set_as<uint32_t>(i, pack2(pair[0], pair[1], half()));
  });
  if constexpr (count % 2 > 0)
    result.get_thread_buffer()(number<count - 1>{}) = half(tile.get_thread_buffer()[number<count - 1>{}]);
  return result;
}

// Each element of a tile in LDS becomes `value`. All `threads` threads.
template <int threads, class T, class Layout> CK_TILE_DEVICE void fill_tile(LdsTile<T, Layout>& tile, T value) {
  for (int i = static_cast<int>(threadIdx.x); i < tile.elements; i += threads) tile.data[i] = value;
}

}  // namespace tl
