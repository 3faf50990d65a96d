//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// allowance is a way in which our answers differ from geth's on purpose.
type allowance struct {
	name, reason string
	// example is a message that the answers differ to in this way. It is put to both
	// sides in each run, before anything is safe or final.
	example string
	// allows says whether the difference is this one. It looks at as much of the
	// request and of both answers as there is to see. Geth is nil where it is
	// silent, and where the answer is one to the message as a whole.
	allows func(r request, geth, ours *response) bool
}

// allowances is all that may differ. What is not in it is a mistake, and so is what is
// in it and is not met.
var allowances = []allowance{
	{
		name:    "totalDifficulty",
		reason:  "the specification's examples have it as null; geth leaves it out since 1.9.25",
		example: `{"jsonrpc":"2.0","id":1,"method":"eth_getUncleByBlockNumberAndIndex","params":["0x8","0x0"]}`,
		allows: func(_ request, geth, ours *response) bool {
			return geth != nil && geth.Error == nil && ours.Error == nil && bytes.Equal(geth.ID, ours.ID) &&
				bytes.Equal(withTotalDifficulty(geth.Result), ours.Result)
		},
	},
	{
		name:    "tag without a block",
		reason:  "the specification says null where no block was found; geth has an error for it",
		example: `{"jsonrpc":"2.0","id":1,"method":"eth_getUncleByBlockNumberAndIndex","params":["safe","0x0"]}`,
		allows: func(r request, geth, ours *response) bool {
			return geth != nil && geth.Error != nil && geth.Error.Code == -32000 && bytes.Equal(geth.ID, ours.ID) &&
				ours.Error == nil && string(ours.Result) == "null" &&
				r.any(func(o requestObject) bool {
					return o.has(ours.ID) && geth.Error.Message == map[string]string{
						`"safe"`: "safe block not found", `"finalized"`: "finalized block not found",
					}[string(o.param(0))]
				})
		},
	},
	{
		name:    "Go's types",
		reason:  "geth's messages name types of its source, which mean nothing to a caller",
		example: `{"jsonrpc":"2.0","id":1,"method":"eth_getUncleByBlockNumberAndIndex","params":["0x8",0]}`,
		allows: func(_ request, geth, ours *response) bool {
			if geth == nil || geth.Error == nil || !ours.fails(-32602, "") || geth.Error.Code != -32602 || !bytes.Equal(geth.ID, ours.ID) {
				return false
			}
			found := goTypes.FindStringSubmatch(geth.Error.Message)
			return found != nil && ours.Error.Message == found[1]+found[2]
		},
	},
	{
		name:    "empty index",
		reason:  `geth reads "" as 0, by an accident of hexutil.Uint`,
		example: `{"jsonrpc":"2.0","id":1,"method":"eth_getUncleByBlockNumberAndIndex","params":["0x8",""]}`,
		allows: func(r request, geth, ours *response) bool {
			return geth != nil && bytes.Equal(geth.ID, ours.ID) && ours.fails(-32602, "invalid argument 1: empty hex string") &&
				r.any(func(o requestObject) bool { return o.has(ours.ID) && string(o.param(1)) == `""` })
		},
	},
	{
		name:    "boolean id",
		reason:  "JSON-RPC 2.0 has strings, numbers and null for ids; geth takes true and false as well",
		example: `{"jsonrpc":"2.0","id":true,"method":"eth_getUncleByBlockNumberAndIndex","params":["0x8","0x0"]}`,
		allows: func(r request, geth, ours *response) bool {
			return geth != nil && isBool(geth.ID) && string(ours.ID) == "null" && ours.fails(-32600, "invalid request") &&
				r.any(func(o requestObject) bool { return o.has(geth.ID) })
		},
	},
	{
		name:    "repeated member",
		reason:  "where a name is repeated the last value stands; geth falls back on an earlier one if the last is no string",
		example: `{"jsonrpc":"2.0","id":1,"method":"eth_getUncleByBlockNumberAndIndex","method":1}`,
		allows: func(r request, geth, ours *response) bool {
			return ours.fails(-32600, "invalid request") && r.any(func(o requestObject) bool {
				if !(o.isNoString("method") && o.repeated["method"] || o.isNoString("jsonrpc") && o.repeated["jsonrpc"]) {
					return false
				}
				if o.has(nil) { // a notification to geth
					return geth == nil && string(ours.ID) == "null"
				}
				return geth != nil && bytes.Equal(geth.ID, ours.ID) && o.has(ours.ID)
			})
		},
	},
	{
		name:    "response as a request",
		reason:  "geth takes it for the answer to a question of its own and is silent; who sent it waits",
		example: `{"jsonrpc":"2.0","id":1,"result":null}`,
		allows: func(r request, geth, ours *response) bool {
			return geth == nil && ours.fails(-32600, "invalid request") && r.any(func(o requestObject) bool {
				return o.text("jsonrpc") == "2.0" && o.text("method") == "" && o.members["params"] == nil &&
					(o.members["result"] != nil || o.members["error"] != nil) &&
					(o.has(ours.ID) || isBool(o.members["id"]) && string(ours.ID) == "null")
			})
		},
	},
	{
		name:    "white space",
		reason:  "JSON has four white space characters; geth takes a body of any of Unicode's for an empty one",
		example: "\u2028",
		allows: func(r request, geth, ours *response) bool {
			return geth == nil && strings.TrimSpace(r.text) == "" && strings.Trim(r.text, " \t\r\n") != "" &&
				string(ours.ID) == "null" && ours.fails(-32700, "parse error")
		},
	},
	{
		name:    "invalid UTF-8",
		reason:  "RFC 8259 wants UTF-8; geth passes other bytes on, into its answers too",
		example: "\"\xff\"",
		allows: func(r request, _, ours *response) bool {
			return !utf8.ValidString(r.text) && string(ours.ID) == "null" && ours.fails(-32700, "parse error")
		},
	},
	{
		name:    "deep nesting",
		reason:  "we read 128 levels; geth reads 10,000, which is what encoding/json does",
		example: strings.Repeat("[", 129) + strings.Repeat("]", 129),
		allows: func(r request, _, ours *response) bool {
			return depth(r.text) > 128 && string(ours.ID) == "null" && ours.fails(-32700, "parse error")
		},
	},
	{
		name:    "method of geth's",
		reason:  "geth serves more than uncles",
		example: `{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}`,
		allows: func(r request, geth, ours *response) bool {
			return geth != nil && bytes.Equal(geth.ID, ours.ID) && r.any(func(o requestObject) bool {
				name := o.text("method")
				return o.has(ours.ID) && ours.fails(-32601, fmt.Sprintf("the method %s does not exist/is not available", name)) &&
					(slices.Contains(gethMethods, name) || strings.HasSuffix(name, "_subscribe") || strings.HasSuffix(name, "_unsubscribe"))
			})
		},
	},
}

// gethMethods are those methods of geth's that are asked for.
var gethMethods = []string{"eth_blockNumber", "eth_chainId", "eth_getUncleCountByBlockNumber", "eth_syncing", "rpc_modules"}

// goTypes finds where a message of geth's names types.
var goTypes = regexp.MustCompile(`^(invalid argument [01]: )json: cannot unmarshal (.*) into Go value of type (?:hexutil\.Uint|common\.Hash)$`)

// fails says whether a response is this error, with any message if none is given.
func (r *response) fails(code int, message string) bool {
	return r.Error != nil && r.Result == nil && r.Error.Data == nil && r.Error.Code == code && (message == "" || r.Error.Message == message)
}

// withTotalDifficulty puts the member where it belongs in an uncle of geth's, whose
// members are in alphabetical order.
func withTotalDifficulty(uncle []byte) []byte {
	return bytes.Replace(uncle, []byte(`,"transactionsRoot":`), []byte(`,"totalDifficulty":null,"transactionsRoot":`), 1)
}

func isBool(raw json.RawMessage) bool { return string(raw) == "true" || string(raw) == "false" }

// depth is how many arrays and objects are inside each other, at the deepest.
func depth(text string) (deepest int) {
	now, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			now++
			deepest = max(deepest, now)
		case c == ']' || c == '}':
			now--
		}
	}
	return deepest
}
