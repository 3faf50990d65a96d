// Package actor runs actors: state that one goroutine touches at a time, reached
// by messages.
//
// It has two layers. Both cost nothing while idle: no actor has a goroutine.
//
// # Cells
//
// A [Cell] is four bytes that turn any struct into something that at most one
// goroutine runs at a time, and a [Pool] is the goroutines. This is for the very
// many and very small: one per connection. The struct keeps its own input where it
// likes and posts a signal bit when there is some; Run is called on the pool. The
// session example shows it.
//
// # Actors
//
// A [System] holds service actors: few, named, watched. An actor is a value with a
// Receive method, a bounded mailbox in front of it and a supervisor around it:
//
//	type register struct{ names map[string]int }
//
//	func (r *register) Receive(m enter) { r.names[m.name]++ }
//
//	sys, err := actor.NewSystem(actor.Config{Name: "registry", Logger: log, Registerer: reg})
//	ref, err := actor.Spawn(sys, actor.Options{Name: "register"},
//		func(*actor.Ref[enter]) (actor.Actor[enter], error) {
//			return &register{names: map[string]int{}}, nil
//		})
//	err = ref.Tell(enter{"jennie"})
//	...
//	err = sys.Stop(ctx)
//
// Receive touches its state without a lock, and must not block: it runs on one of
// the pool's few goroutines. What takes long (a question to another machine) is
// started there, and its answer is told back to the actor. Such answers come by
// [Ref.TellReserved]: with as many reserved places as there are questions open,
// an answer always finds room, however many new messages press in. Two actors that
// tell each other with Tell alone may each find the other full; Tell says so and
// never waits, so they cannot lock each other up.
//
// # Who answers for a message
//
// A message is always in one pair of hands:
//
//   - Tell returned an error: it stays the sender's.
//   - Receive was called and returned: it is the actor's. One it keeps (somebody
//     waits for something) it must answer later, in [Stopper] or [Crasher] at the
//     latest.
//   - Receive panicked, or the message was discarded at a stop: the runtime calls
//     its Fail, if it is a [Failer].
//
// A message with a [Reply] inside is a Failer. [Ask] and [AskFunc] send such a
// message and promise exactly one outcome on top: the actor's, the runtime's, or
// the deadline's.
//
// # When an actor panics
//
// The message that it was receiving is failed, the dead value is told if it is a
// Crasher, the stack is logged, and after a pause start makes a new value, which
// goes on with the next message. The pause is 10 ms at first, doubled with each
// crash in a row to at most 5 s, less a random part; after 10 s of health the
// count begins anew. Mail waits in the mailbox during the pause, as much as fits.
// A start that fails counts as a crash. State is never carried over: what an actor
// needs to know again, start must find out. runtime.Goexit counts as a panic.
//
// # Stopping
//
// [System.Stop] stops the actors one by one, the last spawned first: an actor may
// use those that were there before it. Each refuses new mail (reserved places too:
// answers still on their way are refused, so let questions finish before the stop
// or answer in Stopped those who wait), receives what it has, and has its Stopped
// called. When the context ends first, what is left is failed.
//
// # Seeing them
//
// A [Page] shows Systems on the operator's listener: each, the supervisor, and below it
// its actors with their state, mailbox, crashes and dead letters. The
// metrics ommer_actor_... are the same figures.
//
// # What it costs
//
// Against a goroutine that receives from a channel with as many places, the time
// for one message is so many times that of the channel:
//
//	                                    1 sender  2 senders  64 senders
//	told and received                        0.5        0.75         0.9
//	refused, since there is no place           5
//	asked and answered (Ask)                 1.5         1.5         1.3
//
// A message costs less where there are many in a row, since one look takes a batch
// out of the mailbox. A refusal is counted, which takes the mailbox's lock. A
// question pays for a pool's goroutine to be woken by a lock and not by the
// runtime's own handing-over, and for the promise of one outcome; it allocates 4
// objects, 184 bytes, in place of 1 and 128. Telling allocates nothing. These are
// medians of nine runs, on two processors that had other work, of
//
//	go test -run '^$' -bench 'Tell|Ask' ./bus/actor
//
// # What is tested
//
// TestPrograms and FuzzPrograms run random programs of all of the above and follow
// each message to its end; -programs 5000 runs more of them.
//
// # Locks
//
// There is one in each mailbox, actor, pool and system. None is held while another
// is taken or while the user's code is called, so their order does not matter.
//
// # Limits
//
//   - a mailbox: Options.Mailbox (default 1024) and Options.Reserved (default 0)
//   - one run of an actor: 64 messages, then others have their turn
//   - a Pool's queue: one entry per cell that has work
//   - an idle mailbox: 16 KiB of ring at most; it grows with use
//
// # What this package does not do
//
// It knows nothing of what its users say to each other, and imports nothing of
// the project. There are no addresses beyond a [Ref], no supervisors of supervisors,
// no priorities, and no mail between processes: that is the bus.
package actor
