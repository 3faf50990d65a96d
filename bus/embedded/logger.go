package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// logger passes the server's log on to slog. Notices become debug lines: they are
// the server's own affairs, and the process says itself when it is ready.
type logger struct {
	log *slog.Logger

	mu    sync.Mutex
	first string // the first fatal message
}

func newLogger(l *slog.Logger) *logger {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	return &logger{log: l}
}

// fatal is why the server could not go on, empty when it could.
func (l *logger) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

func (l *logger) Noticef(format string, v ...any) { l.emit(slog.LevelDebug, format, v) }
func (l *logger) Warnf(format string, v ...any)   { l.emit(slog.LevelWarn, format, v) }
func (l *logger) Errorf(format string, v ...any)  { l.emit(slog.LevelError, format, v) }
func (l *logger) Debugf(format string, v ...any)  { l.emit(slog.LevelDebug, format, v) }
func (l *logger) Tracef(format string, v ...any)  { l.emit(slog.LevelDebug, format, v) }

// Fatalf keeps the message for New to return. The server's own logger would end
// the process here.
func (l *logger) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == "" {
		l.first = fmt.Sprintf(format, v...)
	}
}

func (l *logger) emit(level slog.Level, format string, v []any) {
	if ctx := context.Background(); l.log.Enabled(ctx, level) {
		l.log.Log(ctx, level, "nats-server", "text", fmt.Sprintf(format, v...))
	}
}
