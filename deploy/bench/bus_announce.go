package main

import (
	"encoding/json"
	"time"

	"github.com/ommer/ommer/bus"
)

// announce says what a worker announces of itself while its bus.Server does not: a
// client chooses only among workers that it hears. It returns how to end it.
func announce(l *bus.Link, worker string) (end func() error) {
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		subject := loadSubjects + worker
		if sub, err := l.NATS().SubscribeSync(subject); err == nil {
			_, err = sub.NextMsg(3 * bus.LoadInterval)
			_ = sub.Unsubscribe() // an error means that the connection was closed
			if err == nil {
				return // the server speaks for itself
			}
		}
		load, _ := json.Marshal(bus.Load{Worker: worker, Instance: worker, Network: choiceNetwork, State: bus.Ready, MaxInFlight: bus.DefaultMaxInFlight})
		tick := time.NewTicker(bus.LoadInterval)
		defer tick.Stop()
		for {
			_ = l.NATS().Publish(subject, load) // what is not heard is said again
			select {
			case <-tick.C:
			case <-ended:
				return
			}
		}
	}()
	return func() error {
		close(ended)
		<-stopped
		return nil
	}
}
