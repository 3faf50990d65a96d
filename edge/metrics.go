package edge

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/jsonrpc"
)

// metrics counts what the sessions do. Every label set is closed and every
// series is made at the start, so that counting is one atomic addition.
type metrics struct {
	calls      []calls                    // by network
	outcomes   map[int]prometheus.Counter // errors made at the edge, by JSON-RPC code
	responses  map[int]prometheus.Counter // by HTTP status
	messages   prometheus.Counter
	webSockets prometheus.Counter
	ends       map[error]prometheus.Counter
	rejections map[setting]prometheus.Counter
	shed       [len(shedNames)]prometheus.Counter
}

// calls counts those for one network.
type calls struct {
	by         [len(schema.Methods) + 1]prometheus.Counter // by method, 0 is any other
	discovered prometheus.Counter                          // calls of rpc.discover
}

func newMetrics(reg prometheus.Registerer, networks []network) *metrics {
	m := &metrics{
		outcomes: map[int]prometheus.Counter{}, responses: map[int]prometheus.Counter{},
		ends: map[error]prometheus.Counter{}, rejections: map[setting]prometheus.Counter{},
	}
	received := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ommer_edge_calls_total", Help: "JSON-RPC calls received, by network and method; invalid requests are other.",
	}, []string{"network", "method"})
	for _, n := range networks {
		var c calls
		c.by[0] = received.WithLabelValues(n.name, "other")
		for _, method := range schema.Methods {
			c.by[method] = received.WithLabelValues(n.name, method.String())
		}
		c.discovered = received.WithLabelValues(n.name, schema.Discover)
		m.calls = append(m.calls, c)
	}
	outcomes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ommer_edge_refused_calls_total", Help: "Calls answered with an error without asking a worker, by JSON-RPC code.",
	}, []string{"code"})
	for _, code := range []int{jsonrpc.CodeParse, jsonrpc.CodeInvalidRequest, jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, schema.CodeTimeout, schema.CodeLimit} {
		m.outcomes[code] = outcomes.WithLabelValues(strconv.Itoa(code))
	}
	responses := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ommer_edge_http_responses_total", Help: "HTTP responses, by status.",
	}, []string{"status"})
	for _, status := range statuses() {
		m.responses[status] = responses.WithLabelValues(strconv.Itoa(status))
	}
	ends := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ommer_edge_sessions_ended_total", Help: "Connections that the edge ended, by reason.",
	}, []string{"reason"})
	for _, why := range []error{errIdle, errSlow, errCrowded, errStalled, errSilent, errSpared, errLeaving, errRevoked, errRejected, errProtocol, errClosing, errEnded, errAsked, errPanicked} {
		m.ends[why] = ends.WithLabelValues(why.Error())
	}
	rejections := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ommer_edge_settings_rejections_total", Help: "What the settings of its key have refused: requests and messages by origin, network or rate, calls by method, handshakes by max-conns, the edge's own limit included.",
	}, []string{"setting"})
	for _, by := range []setting{byNetwork, byOrigin, byMethod, byRate, byConns} {
		m.rejections[by] = rejections.WithLabelValues(string(by))
	}
	shed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ommer_edge_overload_shed_total", Help: "What was shed while overloaded; refused connections are in ommer_nio_refused_total.",
	}, []string{"action"})
	for action, name := range shedNames {
		m.shed[action] = shed.WithLabelValues(name)
	}
	m.messages = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ommer_edge_ws_messages_total", Help: "WebSocket messages received.",
	})
	m.webSockets = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ommer_edge_ws_opened_total", Help: "WebSocket handshakes accepted.",
	})
	if reg != nil {
		reg.MustRegister(received, outcomes, responses, ends, rejections, shed, m.messages, m.webSockets)
	}
	return m
}

// count counts the calls of an exchange.
func (m *metrics) count(x *exchange) {
	of := &m.calls[x.network.number]
	for i := range x.calls {
		switch c := &x.calls[i]; c.kind {
		case lookedUp:
			of.by[c.question.Method()].Inc()
		case known:
			of.discovered.Inc()
		case refused:
			m.refused(x.network, c.err)
			if c.err == errSettings {
				m.rejected(byMethod)
			}
		case silent:
			of.by[0].Inc()
		}
	}
}

// refused counts a call that was answered at the edge.
func (m *metrics) refused(on *network, err *jsonrpc.Error) {
	m.calls[on.number].by[0].Inc()
	if c := m.outcomes[err.Code]; c != nil {
		c.Inc()
	}
}

// rejected counts what the settings of a key have refused.
func (m *metrics) rejected(by setting) { m.rejections[by].Inc() }

// responded counts an HTTP response.
func (m *metrics) responded(status int) {
	if c := m.responses[status]; c != nil {
		c.Inc()
	}
}

// ended counts a connection that the edge ended.
func (m *metrics) ended(why error) {
	if c := m.ends[why]; c != nil {
		c.Inc()
	}
}
