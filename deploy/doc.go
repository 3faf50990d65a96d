// Package deploy is how the parts become running processes: the all-in-one
// binary, the development node, end-to-end tests and measuring programs below it.
// The package itself holds the rules of the tree, as a test.
package deploy
