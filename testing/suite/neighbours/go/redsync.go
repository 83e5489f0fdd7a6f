package main

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// ofRedsync is redsync itself, on one server or several.
type ofRedsync struct {
	redsync *redsync.Redsync
	held    *redsync.Mutex
}

func newRedsync(clients []*redis.Client) library {
	var pools []pool.Pool
	for _, client := range clients {
		pools = append(pools, goredis.NewPool(client))
	}
	return &ofRedsync{redsync: redsync.New(pools...)}
}

// mutex returns a mutex of this name, and remembers it as the one held.
func (w *ofRedsync) mutex(words []string, options ...redsync.Option) *redsync.Mutex {
	// The default limit of a server is a twentieth of the lease, which is short on a busy machine.
	options = append(options, redsync.WithExpiry(milliseconds(words[1])), redsync.WithTimeoutFactor(1))
	w.held = w.redsync.NewMutex(words[0], options...)
	return w.held
}

func (w *ofRedsync) run(verb string, words []string) (string, error) {
	switch verb {
	case "acquire":
		patiently := []redsync.Option{redsync.WithTries(math.MaxInt32), redsync.WithRetryDelay(5 * time.Millisecond)}
		err := w.mutex(words, patiently...).Lock()
		return w.held.Value(), err
	case "acquire-by-default":
		err := w.mutex(words).Lock()
		return w.held.Value(), err
	case "try":
		err := w.mutex(words).TryLock()
		return w.held.Value(), err
	case "try-reviving":
		err := w.mutex(words, redsync.WithSetNXOnExtend()).TryLock()
		return w.held.Value(), err
	case "defaults":
		// These fields are not public; this only reads them.
		fields := reflect.ValueOf(w.redsync.NewMutex("defaults")).Elem()
		expiry := time.Duration(fields.FieldByName("expiry").Int())
		return fmt.Sprintf("expiry=%v tries=%d", expiry, fields.FieldByName("tries").Int()), nil
	case "extend":
		return yes(w.held.Extend())
	case "release":
		return yes(w.held.Unlock())
	default:
		panic("not a command: " + verb)
	}
}

func yes(done bool, err error) (string, error) {
	if err == nil && !done {
		err = fmt.Errorf("not held")
	}
	return "", err
}
