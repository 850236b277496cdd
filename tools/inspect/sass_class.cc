#include "tools/inspect/sass_class.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace pagejit::inspect {
namespace {

constexpr std::array<std::string_view, kNumSassClasses> kNames = {
    "matrix products", "f32 arithmetic", "f16 arithmetic",  "special functions", "conversions",
    "integer, logic",  "uniform",        "lane exchange",   "constant loads",    "global loads",
    "global stores",   "async copies",   "matrix loads",    "shared loads",      "shared stores",
    "local memory",    "atomics",        "synchronisation", "control",           "other"};

struct Operation {
  std::string_view name;  // up to the first dot
  SassClass c;
};
using enum SassClass;
constexpr Operation kOperations[] = {
    {"HMMA", kMatrixProduct},
    {"IMMA", kMatrixProduct},
    {"BMMA", kMatrixProduct},
    {"DMMA", kMatrixProduct},
    {"QMMA", kMatrixProduct},
    {"OMMA", kMatrixProduct},
    {"HGMMA", kMatrixProduct},
    {"IGMMA", kMatrixProduct},
    {"QGMMA", kMatrixProduct},
    {"BGMMA", kMatrixProduct},
    {"UTCHMMA", kMatrixProduct},
    {"UTCIMMA", kMatrixProduct},
    {"UTCQMMA", kMatrixProduct},
    {"UTCOMMA", kMatrixProduct},
    {"UTCMXQMMA", kMatrixProduct},
    {"FADD", kFloat32},
    {"FADD2", kFloat32},
    {"FADD32I", kFloat32},
    {"FMUL", kFloat32},
    {"FMUL2", kFloat32},
    {"FMUL32I", kFloat32},
    {"FFMA", kFloat32},
    {"FFMA2", kFloat32},
    {"FFMA32I", kFloat32},
    {"FMNMX", kFloat32},
    {"FMNMX3", kFloat32},
    {"FSEL", kFloat32},
    {"FSET", kFloat32},
    {"FSETP", kFloat32},
    {"FCHK", kFloat32},
    {"FSWZADD", kFloat32},
    {"HADD2", kFloat16},
    {"HADD2_32I", kFloat16},
    {"HMUL2", kFloat16},
    {"HMUL2_32I", kFloat16},
    {"HFMA2", kFloat16},
    {"HFMA2_32I", kFloat16},
    {"HMNMX2", kFloat16},
    {"HSET2", kFloat16},
    {"HSETP2", kFloat16},
    {"VHMNMX", kFloat16},
    {"MUFU", kSpecial},
    {"F2F", kConversion},
    {"F2FP", kConversion},
    {"F2I", kConversion},
    {"F2IP", kConversion},
    {"I2F", kConversion},
    {"I2FP", kConversion},
    {"I2I", kConversion},
    {"I2IP", kConversion},
    {"FRND", kConversion},
    {"IMAD", kInteger},
    {"IADD", kInteger},
    {"IADD3", kInteger},
    {"IADD32I", kInteger},
    {"ISETP", kInteger},
    {"ISET", kInteger},
    {"IMNMX", kInteger},
    {"IABS", kInteger},
    {"IMUL", kInteger},
    {"IDP", kInteger},
    {"IDP4A", kInteger},
    {"ISCADD", kInteger},
    {"LOP3", kInteger},
    {"LOP", kInteger},
    {"LOP32I", kInteger},
    {"LEA", kInteger},
    {"SHF", kInteger},
    {"SHL", kInteger},
    {"SHR", kInteger},
    {"BMSK", kInteger},
    {"BREV", kInteger},
    {"FLO", kInteger},
    {"POPC", kInteger},
    {"PRMT", kInteger},
    {"SEL", kInteger},
    {"SGXT", kInteger},
    {"MOV", kInteger},
    {"MOV32I", kInteger},
    {"CS2R", kInteger},
    {"S2R", kInteger},
    {"P2R", kInteger},
    {"R2P", kInteger},
    {"PLOP3", kInteger},
    {"PSETP", kInteger},
    {"VIADD", kInteger},
    {"VIADDMNMX", kInteger},
    {"VIMNMX", kInteger},
    {"VIMNMX3", kInteger},
    {"VABSDIFF", kInteger},
    {"VABSDIFF4", kInteger},
    {"S2UR", kUniform},
    {"R2UR", kUniform},
    {"SHFL", kExchange},
    {"VOTE", kExchange},
    {"VOTEU", kExchange},
    {"MOVM", kExchange},
    {"MATCH", kExchange},
    {"REDUX", kExchange},
    {"CREDUX", kExchange},
    {"LDC", kConstantLoad},
    {"LDCU", kConstantLoad},
    {"ULDC", kConstantLoad},
    {"LDG", kGlobalLoad},
    {"LD", kGlobalLoad},
    {"LDGMC", kGlobalLoad},
    {"STG", kGlobalStore},
    {"ST", kGlobalStore},
    {"LDGSTS", kAsyncCopy},
    {"UBLKCP", kAsyncCopy},
    {"UBLKPF", kAsyncCopy},
    {"UTMALDG", kAsyncCopy},
    {"UTMASTG", kAsyncCopy},
    {"UTMAPF", kAsyncCopy},
    {"UTMAREDG", kAsyncCopy},
    {"STAS", kAsyncCopy},
    {"LDSM", kMatrixLoad},
    {"LDS", kSharedLoad},
    {"STS", kSharedStore},
    {"STSM", kSharedStore},
    {"LDL", kLocal},
    {"STL", kLocal},
    {"ATOM", kAtomic},
    {"ATOMG", kAtomic},
    {"ATOMS", kAtomic},
    {"RED", kAtomic},
    {"REDG", kAtomic},
    {"REDS", kAtomic},
    {"UREDGR", kAtomic},
    {"BAR", kSynchronisation},
    {"DEPBAR", kSynchronisation},
    {"LDGDEPBAR", kSynchronisation},
    {"ARRIVES", kSynchronisation},
    {"SYNCS", kSynchronisation},
    {"MEMBAR", kSynchronisation},
    {"ERRBAR", kSynchronisation},
    {"CGAERRBAR", kSynchronisation},
    {"CCTL", kSynchronisation},
    {"FENCE", kSynchronisation},
    {"WARPSYNC", kSynchronisation},
    {"WARPGROUP", kSynchronisation},
    {"ENDCOLLECTIVE", kSynchronisation},
    {"ACQBULK", kSynchronisation},
    {"PREEXIT", kSynchronisation},
    {"UTMACMDFLUSH", kSynchronisation},
    {"UCGABAR_ARV", kSynchronisation},
    {"UCGABAR_WAIT", kSynchronisation},
    {"B2R", kSynchronisation},
    {"BRA", kControl},
    {"BRX", kControl},
    {"BRXU", kControl},
    {"JMP", kControl},
    {"JMX", kControl},
    {"JMXU", kControl},
    {"CALL", kControl},
    {"RET", kControl},
    {"EXIT", kControl},
    {"KILL", kControl},
    {"BSSY", kControl},
    {"BSYNC", kControl},
    {"BMOV", kControl},
    {"BREAK", kControl},
    {"YIELD", kControl},
    {"NANOSLEEP", kControl},
    {"BPT", kControl},
    {"RPCMOV", kControl},
};

bool moves_data(SassClass c) {
  return c == kGlobalLoad || c == kGlobalStore || c == kAsyncCopy || c == kMatrixLoad ||
         c == kSharedLoad || c == kSharedStore || c == kLocal;
}

}  // namespace

std::string_view class_name(SassClass c) { return kNames[static_cast<size_t>(c)]; }

SassClass class_of(std::string_view opcode) {
  const std::string_view name = opcode.substr(0, std::min(opcode.find('.'), opcode.size()));
  const auto* found = std::find_if(std::begin(kOperations), std::end(kOperations),
                                   [&](const Operation& o) { return o.name == name; });
  if (found != std::end(kOperations)) return found->c;
  // The uniform data path has the names of the ordinary one after a U.
  if (name.starts_with('U') && name.size() > 2) {
    const SassClass plain = class_of(name.substr(1));
    if (plain == kInteger || plain == kFloat32 || plain == kConversion) return kUniform;
  }
  return kOther;
}

int width_of(std::string_view opcode) {
  const SassClass c = class_of(opcode);
  if (!moves_data(c) || opcode.starts_with('U')) return 0;
  // ldmatrix and stmatrix: a register for each matrix, whatever its elements are.
  const bool is_of_matrices = c == kMatrixLoad || opcode.starts_with("STSM");
  int width = 32;
  for (size_t dot = opcode.find('.'); dot != std::string_view::npos;) {
    const size_t next = opcode.find('.', dot + 1);
    const std::string_view part = opcode.substr(dot + 1, next - dot - 1);
    if (is_of_matrices) {
      if (part == "4") width = 128;
      if (part == "2") width = 64;
    } else {
      if (part == "256") width = 256;
      if (part == "128") width = 128;
      if (part == "64") width = 64;
      if (part == "U16" || part == "S16" || part == "16") width = 16;
      if (part == "U8" || part == "S8" || part == "8") width = 8;
    }
    dot = next;
  }
  return width;
}

}  // namespace pagejit::inspect
