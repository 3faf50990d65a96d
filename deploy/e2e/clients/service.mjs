// The service under test, as clients_test.go describes it.

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

export const service = JSON.parse(readFileSync(process.env.OMMER_SERVICE, 'utf8'))

export const byNumber = 'eth_getUncleByBlockNumberAndIndex'
export const byHash = 'eth_getUncleByBlockHashAndIndex'

// A key of the right form that was never issued.
export const wrongKey = 'ommer_' + 'Zq9'.repeat(16) + 'x'

export const https = ({ edge = 'main', key = service.key } = {}) => `${service.edges[edge].https}/v3/${key}`
export const wss = ({ edge = 'main', key = service.key } = {}) => `${service.edges[edge].wss}/ws/v3/${key}`

// A lookup that is answered, and calls that are answered with an error, each on the
// edge where it is so.
export const known = { method: byNumber, params: [service.dropped.number, service.dropped.index] }
export const refusals = [
  { name: 'wrong parameters', method: byNumber, params: ['3', '0x0'], code: -32602, message: 'invalid argument 0: hex string without 0x prefix' },
  { name: 'unknown method', method: 'eth_mining', params: [], code: -32601, message: 'the method eth_mining does not exist/is not available' },
  { name: 'pruned history', ...known, edge: 'pruned', code: 4444, message: 'pruned history unavailable' },
  { name: 'no node in time', ...known, edge: 'lost', code: -32002, message: 'request timed out' },
]

// keys runs one of the operator's commands.
async function keys(...args) {
  const { stdout } = await promisify(execFile)(service.commands, ['keys', ...args, '--nats', service.nats])
  return stdout
}

// newKey makes a key and waits until the edge knows it, with a request that is no
// lookup.
export async function newKey(name, ...settings) {
  const key = (await keys('create', '--name', name, ...settings)).trim().split('\n').at(-1)
  await until(`the key ${name} to be known`, async () => (await fetch(https({ key }))).status === 405)
  return key
}

// indebtedKey makes a key with a rate of one call per second and lets it pay for a
// batch, so that it is over its rate for as many seconds, however slow the test is.
export async function indebtedKey(name, calls) {
  const key = await newKey(name, '--rate', '1')
  const body = JSON.stringify(Array.from({ length: calls }, (_, id) => ({ jsonrpc: '2.0', id, ...known })))
  const response = await fetch(https({ key }), { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
  const answers = await response.json()
  if (answers.length !== calls) throw new Error(`a new key is over its rate: ${response.status}`)
  return key
}

// What is answered then, with allowed_rps and backoff_seconds as data.
export const limited = { code: -32005, message: 'rate limit exceeded' }

export const revokeKey = (name) => keys('revoke', name)

// until waits for a condition.
export async function until(what, ok) {
  for (const end = Date.now() + 20_000; Date.now() < end; await pause(10)) {
    if (await ok()) return
  }
  throw new Error(`waited in vain for ${what}`)
}

// metric is the sum of the series of a metric that have the label.
export async function metric(name, { edge = 'main', label = '' } = {}) {
  const text = await (await fetch(`${service.edges[edge].admin}/metrics`)).text()
  const series = text.split('\n').filter((line) => line.startsWith(name) && line.includes(label))
  return series.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

// growth is by how much it grows while a function runs.
export async function growth(during, ...of) {
  const before = await metric(...of)
  await during()
  return (await metric(...of)) - before
}

// requests counts HTTP responses, connections those opened with TLS.
export const requests = (during, label) => growth(during, 'ommer_edge_http_responses_total', { label })
export const connections = (during) => growth(during, 'ommer_nio_accepted_total', { label: 'transport="tls"' })

// occupy sends a lookup to the edge "slow", where one may be in flight per connection
// and none is answered, and waits until it has come.
export async function occupy(send) {
  const calls = () => metric('ommer_edge_calls_total', { edge: 'slow' })
  const before = await calls()
  send()
  await until('a lookup to be in flight', async () => (await calls()) > before)
}

// What is answered to one more.
export const crowded = { ...known, edge: 'slow', code: -32005, message: 'too many requests in flight' }
