package edge

import (
	"cmp"
	"container/list"
	"net/netip"
	"slices"
	"time"
)

// quantum is what a network may use in a round. It is the cost of some ten usual avatars.
// A network with one costly picture waits for several rounds of the others.
const quantum = 5 * time.Millisecond

// fairQueue orders jobs by deficit round robin over networks (Shreedhar and Varghese,
// 1995). In each round a network may use one quantum more. It saves what it does not use
// while it has jobs. Within a network the cheapest job is first, and of equally cheap
// ones the oldest. A network that is alone in the queue has all of what it serves.
type fairQueue struct {
	networks map[netip.Prefix]*network
	rounds   list.List // of *network, the next one first
	count    int       // of jobs
	sequence uint64
}

// network is the jobs of one client network.
type network struct {
	prefix  netip.Prefix
	element *list.Element // in rounds
	deficit time.Duration // what it may use
	cost    time.Duration // of all its jobs
	jobs    []*job        // in the order in which they are served
}

// job is work that waits in a queue, or has left it.
type job struct {
	demand *demand
	cost   time.Duration // estimated, on one core
	start  chan error    // receives nil when the work may start, else why it never will

	work func() error // for a worker; nil: the caller does it
	done chan error   // receives what work returned

	queue   *fairQueue // nil: it does not wait
	network *network
	order   uint64 // of arrival
}

// compareJobs compares jobs of a network by when they are served.
func compareJobs(a, b *job) int {
	return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.order, b.order))
}

// push adds a job to the network that has the least cost waiting, of those that want it.
func (q *fairQueue) push(j *job) {
	q.sequence++
	j.queue, j.order = q, q.sequence
	q.count++
	q.insert(j, q.leastLoaded(j.demand.networks))
}

func (q *fairQueue) insert(j *job, of netip.Prefix) {
	n := q.networks[of]
	if n == nil {
		if q.networks == nil {
			q.networks = map[netip.Prefix]*network{}
		}
		n = &network{prefix: of}
		n.element = q.rounds.PushBack(n)
		q.networks[of] = n
	}
	j.network = n
	n.cost += j.cost
	at, _ := slices.BinarySearchFunc(n.jobs, j, compareJobs)
	n.jobs = slices.Insert(n.jobs, at, j)
}

// remove takes a job out of its network. A network without jobs loses its deficit.
func (q *fairQueue) remove(j *job) {
	n := j.network
	at, _ := slices.BinarySearchFunc(n.jobs, j, compareJobs)
	n.jobs = slices.Delete(n.jobs, at, at+1)
	n.cost -= j.cost
	j.network = nil
	if len(n.jobs) == 0 {
		q.rounds.Remove(n.element)
		delete(q.networks, n.prefix)
	}
}

// drop takes a job out of the queue.
func (q *fairQueue) drop(j *job) {
	q.remove(j)
	q.count--
	j.queue = nil
}

// pop takes out the job that is next. The queue must not be empty.
func (q *fairQueue) pop() *job {
	for {
		n, _ := q.rounds.Front().Value.(*network)
		if j := n.jobs[0]; j.cost <= n.deficit {
			n.deficit -= j.cost
			q.drop(j)
			return j
		}
		n.deficit += quantum
		q.rounds.MoveToBack(n.element)
	}
}

// reassign moves a waiting job to another network that wants it, if less cost waits there.
func (q *fairQueue) reassign(j *job, to netip.Prefix) {
	if q.waiting(to) < j.network.cost-j.cost {
		q.remove(j)
		q.insert(j, to)
	}
}

// waiting returns the cost of a network's jobs.
func (q *fairQueue) waiting(of netip.Prefix) time.Duration {
	if n := q.networks[of]; n != nil {
		return n.cost
	}
	return 0
}

// leastLoaded returns the network with the least cost waiting.
func (q *fairQueue) leastLoaded(of []netip.Prefix) netip.Prefix {
	return slices.MinFunc(of, func(a, b netip.Prefix) int { return int(q.waiting(a) - q.waiting(b)) })
}

// mostLoaded returns the network with the most cost waiting, nil if none waits.
func (q *fairQueue) mostLoaded() (most *network) {
	for _, n := range q.networks {
		if most == nil || n.cost > most.cost {
			most = n
		}
	}
	return most
}

// victim returns the job to be shed for a new one that networks want: the newest job
// of the busiest network. It is nil if that is the new one itself, because no network that
// wants it is less busy, or if other networks want all of the busiest network's jobs.
func (q *fairQueue) victim(wantedBy []netip.Prefix) (newest *job) {
	most := q.mostLoaded()
	if most == nil || q.waiting(q.leastLoaded(wantedBy)) >= most.cost {
		return nil
	}
	for _, j := range most.jobs {
		if len(j.demand.networks) == 1 && (newest == nil || j.order > newest.order) {
			newest = j
		}
	}
	return newest
}
