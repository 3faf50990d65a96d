package http1

import "strconv"

// Continue is what a client is sent that waits before it sends the body,
// RFC 9110 section 15.2.1.
const Continue = "HTTP/1.1 100 Continue\r\n\r\n"

// Response is one answer. What it holds is written as it is: no member may carry
// bytes of a client that were not checked, line ends least of all.
type Response struct {
	// Status is the HTTP status, three digits.
	Status int
	// ContentType is the type of the body; empty writes no such field.
	ContentType string
	// Date is the value of a Date field, such as a [Date] holds. A server that
	// has a clock must send it, RFC 9110 section 6.6.1. Empty writes no field.
	Date []byte
	// Fields holds more fields, preformatted: "Name: value\r\n" any number of times.
	Fields []byte
	// Body is the body. 1xx, 204 and 304 have none whatever it holds.
	Body []byte
	// Head says that the request was a HEAD: the length of Body is told but Body
	// is not sent.
	Head bool
	// Close says that the connection ends with this answer.
	Close bool
	// KeepAlive repeats Request.KeepAlive. Close outranks it.
	KeepAlive bool
}

// AppendResponse appends r to dst. It allocates only where dst has no room.
func AppendResponse(dst []byte, r Response) []byte {
	dst = appendStatusLine(dst, r.Status)
	if len(r.Date) > 0 {
		dst = append(dst, "Date: "...)
		dst = append(dst, r.Date...)
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, r.Fields...)
	switch {
	case r.Close:
		dst = append(dst, "Connection: close\r\n"...)
	case r.KeepAlive:
		dst = append(dst, "Connection: keep-alive\r\n"...)
	}
	if r.Status < 200 || r.Status == 204 || r.Status == 304 {
		// 1xx and 204 must not have a length, RFC 9110 section 8.6, and for 304
		// it would be that of another answer.
		return append(dst, "\r\n"...)
	}
	if r.ContentType != "" {
		dst = append(dst, "Content-Type: "...)
		dst = append(dst, r.ContentType...)
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(r.Body)), 10)
	dst = append(dst, "\r\n\r\n"...)
	if r.Head {
		return dst
	}
	return append(dst, r.Body...)
}

// appendStatusLine appends a status line, RFC 9112 section 4.
func appendStatusLine(dst []byte, status int) []byte {
	if status == 200 {
		return append(dst, "HTTP/1.1 200 OK\r\n"...)
	}
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(dst, ' ')
	dst = append(dst, ReasonPhrase(status)...)
	return append(dst, "\r\n"...)
}

// ReasonPhrase returns the phrase that net/http pairs with the status, empty if
// this package does not know it. An empty phrase is valid.
func ReasonPhrase(status int) string {
	switch status {
	case 100:
		return "Continue"
	case 101:
		return "Switching Protocols"
	case 200:
		return "OK"
	case 204:
		return "No Content"
	case 304:
		return "Not Modified"
	case 400:
		return "Bad Request"
	case 401:
		return "Unauthorized"
	case 403:
		return "Forbidden"
	case 404:
		return "Not Found"
	case 405:
		return "Method Not Allowed"
	case 408:
		return "Request Timeout"
	case 413:
		return "Request Entity Too Large"
	case 414:
		return "Request URI Too Long"
	case 415:
		return "Unsupported Media Type"
	case 417:
		return "Expectation Failed"
	case 426:
		return "Upgrade Required"
	case 429:
		return "Too Many Requests"
	case 431:
		return "Request Header Fields Too Large"
	case 500:
		return "Internal Server Error"
	case 501:
		return "Not Implemented"
	case 502:
		return "Bad Gateway"
	case 503:
		return "Service Unavailable"
	case 504:
		return "Gateway Timeout"
	case 505:
		return "HTTP Version Not Supported"
	default:
		return ""
	}
}
