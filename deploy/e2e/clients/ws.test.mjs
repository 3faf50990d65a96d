// ws 8 and wscat: WebSockets with nothing on top.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { promisify } from 'node:util'
import WebSocket from 'ws'
import { check } from './lookups.mjs'
import {
  byHash, byNumber, connections, crowded, indebtedKey, known, limited, newKey, occupy, refusals, revokeKey, service,
  wrongKey, wss,
} from './service.mjs'

const ca = readFileSync(service.ca)
const call = (id, { method, params }) => JSON.stringify({ jsonrpc: '2.0', id, method, params })

// A connection ends with its test, also when it fails: it would keep the process.
function dial(t, where, options) {
  const ws = new WebSocket(wss(where), { ca, ...options })
  t.after(() => ws.on('error', () => {}).terminate()) // an error where it was never open
  return ws
}

async function open(t, where) {
  const ws = dial(t, where)
  await once(ws, 'open')
  return ws
}

// next is the next message, parsed. Answers are text, whatever was sent.
async function next(ws) {
  const [data, binary] = await once(ws, 'message')
  assert.equal(binary, false)
  return JSON.parse(data)
}

// ask sends a text and returns what is answered.
async function ask(ws, text) {
  const answer = next(ws)
  ws.send(text)
  return answer
}

async function close(ws) {
  ws.close(1000)
  const [code] = await once(ws, 'close')
  assert.equal(code, 1000)
}

test('a lookup', async (t) => {
  const ws = await open(t)
  const { jsonrpc, id, result } = await ask(ws, call('a', known))
  assert.deepEqual([jsonrpc, id], ['2.0', 'a'])
  check(result, service.dropped.hash)
  assert.equal(ws.extensions, '', 'permessage-deflate is offered and not taken')
  await close(ws)
})

test('a thousand at a time, told apart by their ids', async (t) => {
  const ws = await open(t)
  const wanted = new Map()
  const answered = new Promise((resolve, reject) => {
    ws.on('message', (data) => {
      const { id, result } = JSON.parse(data)
      if (result?.hash !== wanted.get(id)) reject(new Error(`${id}: got ${result?.hash}, want ${wanted.get(id)}`))
      wanted.delete(id)
      if (wanted.size === 0) resolve()
    })
  })
  const calls = Array.from({ length: 1000 }, (_, i) => {
    const { number, block, index, hash } = service.uncles[i % service.uncles.length]
    const id = i % 2 ? i : `id-${i}`
    wanted.set(id, hash)
    return call(id, i % 3 ? { method: byNumber, params: [number, index] } : { method: byHash, params: [block, index] })
  })
  assert.equal(await connections(async () => {
    for (const c of calls) ws.send(c)
    await answered
  }), 0)
  await close(ws)
})

test('a batch', async (t) => {
  const ws = await open(t)
  const calls = service.uncles.map((u, id) => call(id, { method: byHash, params: [u.block, u.index] }))
  const answers = await ask(ws, `[${calls}]`)
  assert.deepEqual(answers.map((a) => [a.id, a.result.hash]), service.uncles.map((u, id) => [id, u.hash]))
  await close(ws)
})

for (const refusal of refusals) {
  test(refusal.name, async (t) => {
    const ws = await open(t, refusal)
    const { id, error } = await ask(ws, call(1, refusal))
    assert.deepEqual([id, error], [1, { code: refusal.code, message: refusal.message }])
    await close(ws)
  })
}

test('no JSON, and the connection stays', async (t) => {
  const ws = await open(t)
  assert.deepEqual(await ask(ws, '{'), { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'parse error' } })
  check((await ask(ws, Buffer.from(call(2, known)))).result, service.dropped.hash)
  await close(ws)
})

test('too many in flight', async (t) => {
  const ws = await open(t, crowded)
  await occupy(() => ws.send(call('waits', known)))
  const { id, error } = await ask(ws, call('refused', known))
  assert.deepEqual([id, error], ['refused', { code: crowded.code, message: crowded.message }])
  await close(ws)
})

test('over the rate, per message, and the connection stays', async (t) => {
  const ws = await open(t, { key: await indebtedKey('ws', 100) })
  for (const id of [1, 'two']) {
    const answer = await ask(ws, call(id, known))
    assert.deepEqual([answer.id, answer.error.code, answer.error.message], [id, limited.code, limited.message])
    assert.equal(answer.error.data.allowed_rps, 1)
    assert.ok(answer.error.data.backoff_seconds > 0)
  }
  await close(ws)
})

test('ping', async (t) => {
  const ws = await open(t)
  ws.ping('payload')
  const [data] = await once(ws, 'pong')
  assert.equal(data.toString(), 'payload')
  await close(ws)
})

test('a wrong key', async (t) => {
  const plain = dial(t, { key: wrongKey })
  const [err] = await once(plain, 'error')
  assert.equal(err.message, 'Unexpected server response: 401')

  const curious = dial(t, { key: wrongKey })
  const [, res] = await once(curious, 'unexpected-response')
  assert.equal(res.statusCode, 401)
  const body = (await res.toArray()).join('')
  assert.deepEqual(JSON.parse(body), { jsonrpc: '2.0', id: null, error: { code: -32002, message: 'invalid API key' } })
})

test('an unknown authority', async (t) => {
  const ws = dial(t, {}, { ca: [] })
  const [err] = await once(ws, 'error')
  assert.equal(err.code, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE')
})

test('a key that is revoked', async (t) => {
  const ws = await open(t, { key: await newKey('short-lived') })
  check((await ask(ws, call(1, known))).result, service.dropped.hash)
  const closed = once(ws, 'close')
  await revokeKey('short-lived')
  const [code] = await closed
  assert.equal(code, 4401)
})

test('wscat', async () => {
  const wscat = createRequire(import.meta.url).resolve('wscat/bin/wscat')
  const run = (key) =>
    promisify(execFile)(process.execPath, [wscat, '--ca', service.ca, '-c', wss({ key }), '-x', call('a', known), '-w', '1'])
  check(JSON.parse((await run()).stdout).result, service.dropped.hash)
  await assert.rejects(run(wrongKey), (err) => {
    assert.match(err.stderr, /Unexpected server response: 401/)
    return true
  })
})
