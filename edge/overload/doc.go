// Package overload decides how much of its work an edge sheds so that the rest is
// done well. Static limits bound each thing that a client can take up; a Monitor looks
// at what all of them together do to the process:
//
//   - memory: what the process holds, without garbage, against a budget;
//   - delay: how late what is ready to run is run, against a limit.
//
// The larger the pressure, the higher the Stage: first connections are not kept alive,
// then new ones are refused, then requests. What was taken is always answered. A stage
// is entered at once and left slowly, one at a time.
//
// Nobody but Run changes anything; Stage is one atomic load and may be called by
// anyone at any time. The package knows nothing of connections or requests: what a
// stage means is the edge's affair.
//
// The idea, and the order of the first and the last stage, are Envoy's (its overload
// manager, with stop_accepting_connections between them). That a delay counts only
// when it lasts is CoDel's: RFC 8289, section 3.
package overload
