package schema

// Method is one of the calls that the service answers.
type Method uint8

// The methods. Their values travel in no frame and may be renumbered.
const (
	UncleByNumber Method = iota + 1
	UncleByHash
)

// Methods lists every method, in the order in which documents show them.
var Methods = [...]Method{UncleByNumber, UncleByHash}

// String returns the name that callers use, which is also the last token of the
// method's bus subject.
func (m Method) String() string {
	switch m {
	case UncleByNumber:
		return "eth_getUncleByBlockNumberAndIndex"
	case UncleByHash:
		return "eth_getUncleByBlockHashAndIndex"
	default:
		return "other"
	}
}

// MethodNamed returns the method with the given name. Names match exactly.
func MethodNamed(name []byte) (Method, bool) {
	switch string(name) {
	case "eth_getUncleByBlockNumberAndIndex":
		return UncleByNumber, true
	case "eth_getUncleByBlockHashAndIndex":
		return UncleByHash, true
	default:
		return 0, false
	}
}
