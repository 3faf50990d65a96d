package check

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

var (
	unknown = cell{text: "?"}
	nothing = cell{text: "-"}
)

// rows are the facts in the order of their importance to who looks for a fault.
var rows = []struct {
	label string
	cell  func(*Report) cell
}{
	{"lookups", lookupsCell},
	{"client", func(r *Report) cell {
		if r.Client == nil {
			return unknown
		}
		name, rest, _ := strings.Cut(*r.Client, "/")
		version, _, _ := strings.Cut(rest, "/")
		return ok("%s", strings.TrimSuffix(name+" "+version, " "))
	}},
	{"chain", chainCell},
	{"head", headCell},
	{"safe", func(r *Report) cell { return tagCell(r.Safe) }},
	{"final", func(r *Report) cell { return tagCell(r.Finalized) }},
	{"syncing", func(r *Report) cell {
		switch {
		case r.Syncing == nil:
			return unknown
		case *r.Syncing:
			return warn("yes")
		default:
			return ok("no")
		}
	}},
	{"history", func(r *Report) cell {
		switch {
		case r.History == nil:
			return unknown
		case r.History.All:
			return ok("all")
		default:
			return warn("from block %d", r.History.From)
		}
	}},
	{"state", func(r *Report) cell {
		switch {
		case r.State == nil:
			return unknown
		case r.State.Held:
			return ok("at block %d", r.State.Block)
		default:
			return ok("not at block %d", r.State.Block)
		}
	}},
	{"by number", func(r *Report) cell { return methodCell(r.Uncles, func(u *Uncles) Method { return u.ByNumber }) }},
	{"by hash", func(r *Report) cell { return methodCell(r.Uncles, func(u *Uncles) Method { return u.ByHash }) }},
	{"uncles", unclesCell},
	{"batches", func(r *Report) cell {
		switch {
		case r.Batch == nil:
			return unknown
		case *r.Batch == 0:
			return fail("none")
		case *r.Batch < rowBatch:
			return warn("%d calls", *r.Batch)
		default:
			return ok("%d calls", *r.Batch)
		}
	}},
	{"gzip", func(r *Report) cell { return yesNo(r.Compression) }},
	{"newHeads", func(r *Report) cell { return yesNo(r.Subscribe) }},
	{"latency", func(r *Report) cell {
		if r.Latency == nil {
			return unknown
		}
		tell := ok
		if r.Latency.MedianMS > slowMS {
			tell = warn
		}
		return tell("%s ms, first %s ms", figure(r.Latency.MedianMS), figure(r.Latency.FirstMS))
	}},
	{"untrue", func(r *Report) cell {
		switch {
		case len(r.Untrue) > 0:
			return fail("%d, see below", len(r.Untrue))
		default:
			return ok("nothing seen")
		}
	}},
	{"asked", func(r *Report) cell {
		return ok("%s, %s, %s s", count(r.Calls, "call"), count(r.Requests, "request"), figure(r.Seconds))
	}},
}

func lookupsCell(r *Report) cell {
	switch r.Lookups {
	case All:
		return cell{"all", good}
	case Part:
		return warn("in part")
	default:
		return fail("none")
	}
}

func chainCell(r *Report) cell {
	if r.Chain == nil {
		return unknown
	}
	text := strings.TrimSpace(strconv.FormatUint(r.Chain.ID, 10) + " " + r.Chain.Name)
	if r.Chain.Other != "" {
		return fail("%s, not %s", text, r.Chain.Other)
	}
	return ok("%s", text)
}

func headCell(r *Report) cell {
	if r.Head == nil {
		return unknown
	}
	text := fmt.Sprintf("%d, %s old", r.Head.Number, age(r.Head.AgeSeconds))
	if b := r.Head.Behind; b != nil && *b > 0 {
		text += fmt.Sprintf(", %d behind", *b)
		if *b > farBehind {
			return warn("%s", text)
		}
	}
	return ok("%s", text)
}

func tagCell(t *Tag) cell {
	switch {
	case t == nil:
		return unknown
	case t.Number == nil:
		return ok("none")
	default:
		return ok("%d", *t.Number)
	}
}

func methodCell(u *Uncles, of func(*Uncles) Method) cell {
	if u == nil {
		return unknown
	}
	switch m := of(u); m {
	case Verified:
		return ok("verified at block %d", *u.Block)
	case Answered:
		return ok("answered")
	case Absent:
		return fail("no such method")
	case Failed:
		return fail("failed")
	default:
		return fail("%s at block %d", m, u.at())
	}
}

func unclesCell(r *Report) cell {
	switch u := r.Uncles; {
	case u == nil:
		return unknown
	case u.Merged:
		return ok("none since the merge")
	default:
		return ok("in %d of %d samples", u.Found, u.Samples)
	}
}

// at is the block that the methods were asked with.
func (u *Uncles) at() uint64 {
	if u.Block != nil {
		return *u.Block
	}
	return u.First
}

func yesNo(is *bool) cell {
	switch {
	case is == nil:
		return nothing
	case *is:
		return ok("yes")
	default:
		return ok("no")
	}
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// figure is a number in three digits.
func figure(f float64) string {
	switch {
	case f >= 99.95:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case f >= 9.995:
		return strconv.FormatFloat(f, 'f', 1, 64)
	default:
		return strconv.FormatFloat(f, 'f', 2, 64)
	}
}

// age is a time in its largest unit.
func age(seconds int64) string {
	d := time.Duration(min(max(seconds, 0), 1<<33)) * time.Second
	switch day := 24 * time.Hour; {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d days", d/day)
	}
}
