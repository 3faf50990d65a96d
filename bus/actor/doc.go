// Package actor is the actor runtime.
package actor
