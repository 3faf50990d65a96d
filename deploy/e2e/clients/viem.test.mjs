// viem 2. It has no action for uncles, `request` is the way to ask.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import {
  createPublicClient, http, HttpRequestError, InvalidParamsRpcError, LimitExceededRpcError, MethodNotFoundRpcError,
  ResourceUnavailableRpcError, RpcRequestError, UnknownRpcError, webSocket,
} from 'viem'
import { lookups } from './lookups.mjs'
import {
  byNumber, crowded, growth, https, indebtedKey, known, limited, occupy, refusals, requests, service, wrongKey, wss,
} from './service.mjs'

const classes = {
  [-32601]: MethodNotFoundRpcError,
  [-32602]: InvalidParamsRpcError,
  [-32005]: LimitExceededRpcError,
  [-32002]: ResourceUnavailableRpcError,
  [4444]: RpcRequestError, // it knows no class for this one
}

const raised = ({ code, message }) => (err) => {
  assert.ok(err instanceof classes[code], err.name)
  assert.equal(err.code, code)
  assert.equal(err.details, message)
  return true
}

describe('viem over HTTPS', () => {
  const client = createPublicClient({ transport: http(https()) })

  lookups((method, params) => client.request({ method, params }))

  for (const refusal of refusals) {
    test(refusal.name, async () => {
      let sent = 0
      const client = createPublicClient({ transport: http(https(refusal), { onFetchRequest: () => void sent++ }) })
      await assert.rejects(client.request({ method: refusal.method, params: refusal.params }), raised(refusal))
      assert.equal(sent, 1, 'it is not tried again')
    })
  }
  test('a batch', async () => {
    const client = createPublicClient({ transport: http(https(), { batch: true }) })
    const sent = await requests(async () => {
      const asked = service.uncles.map((u) => client.request({ method: byNumber, params: [u.number, u.index] }))
      const answers = await Promise.all(asked)
      assert.deepEqual(answers.map((a) => a.hash), service.uncles.map((u) => u.hash))
    })
    assert.equal(sent, 1)
  })
  test('one wrong call spoils no batch', async () => {
    const client = createPublicClient({ transport: http(https(), { batch: true }) })
    const [good, bad] = await Promise.allSettled([known, refusals[0]].map(({ method, params }) => client.request({ method, params })))
    assert.equal(good.value.hash, service.dropped.hash)
    assert.ok(raised(refusals[0])(bad.reason))
  })
  test('a wrong key', async () => {
    const client = createPublicClient({ transport: http(https({ key: wrongKey })) })
    const sent = await requests(() =>
      assert.rejects(client.request(known), (err) => {
        assert.ok(err instanceof HttpRequestError, err.name)
        assert.equal(err.status, 401)
        assert.deepEqual(JSON.parse(err.details), { code: -32002, message: 'invalid API key' })
        return true
      }),
    )
    assert.equal(sent, 1, 'it is not tried again')
  })
  test('over the rate, it waits as Retry-After says', async () => {
    let sent = 0
    const url = https({ key: await indebtedKey('viem', 4) })
    const client = createPublicClient({ transport: http(url, { onFetchRequest: () => void sent++ }) })
    assert.equal((await client.request(known)).hash, service.dropped.hash)
    assert.equal(sent, 2)
  })
  test('over the rate, told not to wait', async () => {
    const url = https({ key: await indebtedKey('viem-once', 100) })
    const client = createPublicClient({ transport: http(url, { retryCount: 0 }) })
    await assert.rejects(client.request(known), (err) => {
      assert.ok(err instanceof HttpRequestError, err.name)
      assert.equal(err.status, 429)
      const { code, message, data } = JSON.parse(err.details)
      assert.deepEqual({ code, message }, limited)
      assert.equal(err.headers.get('Retry-After'), `${data.backoff_seconds}`)
      return true
    })
  })
})

describe('viem over WSS', () => {
  const open = (where) => createPublicClient({ transport: webSocket(wss(where), { reconnect: false }) })
  const close = async (client) => (await client.transport.getRpcClient()).close()
  // Clients close with their test, also when it fails: they would keep the process.
  const openFor = (t, where) => {
    const client = open(where)
    t.after(() => close(client))
    return client
  }
  const client = open()
  after(() => close(client))

  lookups((method, params) => client.request({ method, params }))

  for (const refusal of refusals) {
    test(refusal.name, async (t) => {
      const client = openFor(t, refusal)
      await assert.rejects(client.request({ method: refusal.method, params: refusal.params }), raised(refusal))
    })
  }
  test('too many in flight, tried again three times', async (t) => {
    const client = openFor(t, crowded)
    await occupy(() => client.request(known, { retryCount: 0 }).catch(() => {})) // until the connection ends
    const refused = await growth(
      () => assert.rejects(client.request(known), raised(crowded)),
      'ommer_edge_refused_calls_total',
      { edge: 'slow', label: '-32005' },
    )
    assert.equal(refused, 4)
  })
  test('over the rate, tried again three times', async (t) => {
    const client = openFor(t, { key: await indebtedKey('viem-ws', 100) })
    const refused = await growth(
      () => assert.rejects(client.request(known), raised(limited)),
      'ommer_edge_refused_calls_total',
      { label: '-32005' },
    )
    assert.equal(refused, 4)
  })
  test('a wrong key, tried again three times', async () => {
    const client = open({ key: wrongKey })
    const refused = await requests(
      () =>
        assert.rejects(client.request(known), (err) => {
          assert.ok(err instanceof UnknownRpcError, err.name)
          // That of ws; Node.js 22 has a WebSocket of its own, which hides the status.
          assert.match(err.details, /^(Unexpected server response: 401|Received network error or non-101 status code\.)$/)
          return true
        }),
      'status="401"',
    )
    assert.equal(refused, 4)
  })
})
