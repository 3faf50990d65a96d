// Package schematest holds what every schema.Resolver is held to, and a Resolver
// for tests of those who ask one.
//
// Conformance is the contract of schema.Resolver as a test suite. Fixed is a
// Resolver over a table of answers that can be told to keep them back. The package
// is for tests only; no binary links it.
package schematest
