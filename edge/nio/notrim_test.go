//go:build notrim

package nio

// tlsAllocations: crypto/tls has one for each time it looks for a record, the last
// time in vain.
const tlsAllocations = 3
