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
	calls      [len(schema.Methods) + 1]prometheus.Counter // by method, 0 is any other
	discovered prometheus.Counter                          // calls of rpc.discover
	outcomes   map[int]prometheus.Counter                  // errors made at the edge, by JSON-RPC code
	responses  map[int]prometheus.Counter                  // by HTTP status
	messages   prometheus.Counter
	webSockets prometheus.Counter
	ends       map[error]prometheus.Counter
	rejections map[setting]prometheus.Counter
	shed       [len(shedNames)]prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		outcomes: map[int]prometheus.Counter{}, responses: map[int]prometheus.Counter{},
		ends: map[error]prometheus.Counter{}, rejections: map[setting]prometheus.Counter{},
	}
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ommer_edge_calls_total", Help: "JSON-RPC calls received, by method; invalid requests are other.",
	}, []string{"method"})
	m.calls[0] = calls.WithLabelValues("other")
	for _, method := range schema.Methods {
		m.calls[method] = calls.WithLabelValues(method.String())
	}
	m.discovered = calls.WithLabelValues(schema.Discover)
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
		reg.MustRegister(calls, outcomes, responses, ends, rejections, shed, m.messages, m.webSockets)
	}
	return m
}

// count counts the calls of an exchange.
func (m *metrics) count(x *exchange) {
	for i := range x.calls {
		switch c := &x.calls[i]; c.kind {
		case lookedUp:
			m.calls[c.question.Method()].Inc()
		case known:
			m.discovered.Inc()
		case refused:
			m.refused(c.err)
			if c.err == errSettings {
				m.rejected(byMethod)
			}
		case silent:
			m.calls[0].Inc()
		}
	}
}

// refused counts a call that was answered at the edge.
func (m *metrics) refused(err *jsonrpc.Error) {
	m.calls[0].Inc()
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
