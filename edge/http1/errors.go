package http1

import "strconv"

// Reason says why a request was refused. Its String is short and from a closed
// set, fit for a metric's label.
type Reason uint8

// The reasons.
const (
	MethodInvalid      Reason = iota + 1 // the method is no token: garbage, TLS, a second empty line
	MethodLong                           // the method is longer than any that is known
	LineLong                             // the request line is over its limit
	LineInvalid                          // the request line is not method, target and version
	VersionInvalid                       // the version is not HTTP/digit.digit
	VersionUnknown                       // the version is not HTTP/1
	TargetInvalid                        // the target is in no form that the method allows
	BareLF                               // a line ends without CR
	FieldFolded                          // a line begins with white space (obs-fold)
	FieldName                            // a field name is empty, no token, or not followed by a colon
	FieldValue                           // a field value holds control bytes, a bare CR among them
	HeaderLong                           // the header section is over its limit
	FieldsMany                           // there are more header or trailer fields than the limit
	HostMissing                          // HTTP/1.1 without Host
	HostRepeated                         // more than one Host
	HostInvalid                          // the host or port is malformed, or there is userinfo
	LengthInvalid                        // Content-Length is not a number of bytes
	LengthRepeated                       // more than one Content-Length
	LengthAndCoding                      // Content-Length with Transfer-Encoding
	CodingInvalid                        // Transfer-Encoding is empty, repeated, or sent by HTTP/1.0
	CodingUnknown                        // a transfer coding other than chunked
	TrailerForbidden                     // Trailer announces a field that frames messages
	ExpectationUnknown                   // an expectation other than 100-continue
	BodyLong                             // the body is over its limit
	ChunkInvalid                         // the chunked coding is malformed
	ChunkOverhead                        // chunk extensions out of proportion to the data
	TrailerInvalid                       // a trailer field is malformed
	TrailerLong                          // the trailer section is over its limit
	Released                             // the caller released the parser within a body
	reasons
)

// refusals holds the one Error of each reason, so that refusing allocates
// nothing.
var refusals = [reasons]Error{
	MethodInvalid:      {400, MethodInvalid},
	MethodLong:         {501, MethodLong},
	LineLong:           {414, LineLong},
	LineInvalid:        {400, LineInvalid},
	VersionInvalid:     {400, VersionInvalid},
	VersionUnknown:     {505, VersionUnknown},
	TargetInvalid:      {400, TargetInvalid},
	BareLF:             {400, BareLF},
	FieldFolded:        {400, FieldFolded},
	FieldName:          {400, FieldName},
	FieldValue:         {400, FieldValue},
	HeaderLong:         {431, HeaderLong},
	FieldsMany:         {431, FieldsMany},
	HostMissing:        {400, HostMissing},
	HostRepeated:       {400, HostRepeated},
	HostInvalid:        {400, HostInvalid},
	LengthInvalid:      {400, LengthInvalid},
	LengthRepeated:     {400, LengthRepeated},
	LengthAndCoding:    {400, LengthAndCoding},
	CodingInvalid:      {400, CodingInvalid},
	CodingUnknown:      {400, CodingUnknown},
	TrailerForbidden:   {400, TrailerForbidden},
	ExpectationUnknown: {417, ExpectationUnknown},
	BodyLong:           {413, BodyLong},
	ChunkInvalid:       {400, ChunkInvalid},
	ChunkOverhead:      {400, ChunkOverhead},
	TrailerInvalid:     {400, TrailerInvalid},
	TrailerLong:        {431, TrailerLong},
	Released:           {400, Released},
}

var reasonNames = [reasons]string{
	MethodInvalid:      "method-invalid",
	MethodLong:         "method-long",
	LineLong:           "line-long",
	LineInvalid:        "line-invalid",
	VersionInvalid:     "version-invalid",
	VersionUnknown:     "version-unknown",
	TargetInvalid:      "target-invalid",
	BareLF:             "bare-lf",
	FieldFolded:        "field-folded",
	FieldName:          "field-name",
	FieldValue:         "field-value",
	HeaderLong:         "header-long",
	FieldsMany:         "fields-many",
	HostMissing:        "host-missing",
	HostRepeated:       "host-repeated",
	HostInvalid:        "host-invalid",
	LengthInvalid:      "length-invalid",
	LengthRepeated:     "length-repeated",
	LengthAndCoding:    "length-and-coding",
	CodingInvalid:      "coding-invalid",
	CodingUnknown:      "coding-unknown",
	TrailerForbidden:   "trailer-forbidden",
	ExpectationUnknown: "expectation-unknown",
	BodyLong:           "body-long",
	ChunkInvalid:       "chunk-invalid",
	ChunkOverhead:      "chunk-overhead",
	TrailerInvalid:     "trailer-invalid",
	TrailerLong:        "trailer-long",
	Released:           "released",
}

// String returns the name of the reason, "other" for a value that is none.
func (r Reason) String() string {
	if r >= reasons || reasonNames[r] == "" {
		return "other"
	}
	return reasonNames[r]
}

// Error refuses a request and with it the connection. Errors are shared and must
// not be changed. None carries anything that the client sent.
type Error struct {
	// Status is the HTTP status to answer with before closing.
	Status int
	// Reason says what was wrong.
	Reason Reason
}

// Error returns the status and the reason.
func (e *Error) Error() string {
	return "http1: " + strconv.Itoa(e.Status) + " " + e.Reason.String()
}

// refuse returns the shared error of a reason.
func refuse(why Reason) *Error { return &refusals[why] }
