// ethers 6. Its providers have no method for uncles, `send` is the way to ask.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { JsonRpcProvider, WebSocketProvider } from 'ethers'
import { lookups } from './lookups.mjs'
import {
  byNumber, crowded, https, indebtedKey, known, limited, occupy, refusals, requests, service, wrongKey, wss,
} from './service.mjs'

const sepolia = [11155111, { staticNetwork: true }]

// Providers end with their test, also when it fails: they would keep the process.
function overHTTPS(t, where) {
  const provider = new JsonRpcProvider(https(where), ...sepolia)
  t.after(() => provider.destroy())
  return provider
}

function overWSS(t, where) {
  const provider = new WebSocketProvider(wss(where), ...sepolia)
  t.after(() => provider.destroy())
  return provider
}

// raised is what ethers makes of an error: a class of its own for a method that is
// not there, and the JSON-RPC error inside of another one.
const raised = ({ code, message }) => (err) => {
  if (code === -32601) {
    assert.equal(err.code, 'UNSUPPORTED_OPERATION')
    assert.deepEqual(err.info.error, { code, message })
  } else {
    assert.equal(err.code, 'UNKNOWN_ERROR')
    assert.deepEqual(err.error, { code, message })
  }
  return true
}

describe('ethers over HTTPS', () => {
  const provider = new JsonRpcProvider(https(), ...sepolia)
  after(() => provider.destroy())

  lookups((method, params) => provider.send(method, params))

  for (const refusal of refusals) {
    test(refusal.name, async (t) => {
      const provider = overHTTPS(t, refusal)
      await assert.rejects(provider.send(refusal.method, refusal.params), raised(refusal))
    })
  }
  test('calls made together are one batch', async () => {
    const sent = await requests(async () => {
      const answers = await Promise.all(service.uncles.map((u) => provider.send(byNumber, [u.number, u.index])))
      assert.deepEqual(answers.map((a) => a.hash), service.uncles.map((u) => u.hash))
    })
    assert.equal(sent, 1)
  })
  test('one wrong call spoils no batch', async () => {
    const [good, bad] = await Promise.allSettled([known, refusals[0]].map((c) => provider.send(c.method, c.params)))
    assert.equal(good.value.hash, service.dropped.hash)
    assert.ok(raised(refusals[0])(bad.reason))
  })
  test('a wrong key', async (t) => {
    const provider = overHTTPS(t, { key: wrongKey })
    const sent = await requests(() =>
      assert.rejects(provider.send(known.method, known.params), (err) => {
        assert.equal(err.code, 'SERVER_ERROR')
        assert.equal(err.info.responseStatus, '401 Unauthorized')
        assert.match(err.info.responseBody, /"code":-32002,"message":"invalid API key"/)
        return true
      }),
    )
    assert.equal(sent, 1, 'it is not tried again')
  })
  test('over the rate, it takes Retry-After for milliseconds', async (t) => {
    const provider = overHTTPS(t, { key: await indebtedKey('ethers', 100) })
    const sent = await requests(() =>
      assert.rejects(provider.send(known.method, known.params), (err) => {
        assert.equal(err.code, 'SERVER_ERROR')
        assert.equal(err.shortMessage, 'exceeded maximum retry limit')
        assert.match(err.info.responseBody, /"code":-32005,"message":"rate limit exceeded"/)
        return true
      }),
    )
    assert.equal(sent, 12)
  })
  test('without staticNetwork it asks for eth_chainId, in vain', async (t) => {
    const provider = new JsonRpcProvider(https())
    t.after(() => provider.destroy())
    const failed = new Promise((resolve) => provider.on('error', resolve))
    void provider.send(known.method, known.params) // waits for the network
    const { code, event, info } = await failed
    assert.deepEqual([code, event, info.error.code], ['NETWORK_ERROR', 'initial-network-discovery', 'UNSUPPORTED_OPERATION'])
  })
})

describe('ethers over WSS', () => {
  const provider = new WebSocketProvider(wss(), ...sepolia)
  after(() => provider.destroy())

  lookups((method, params) => provider.send(method, params))

  for (const refusal of refusals) {
    test(refusal.name, async (t) => {
      const provider = overWSS(t, refusal)
      await assert.rejects(provider.send(refusal.method, refusal.params), raised(refusal))
    })
  }
  test('too many in flight', async (t) => {
    const provider = overWSS(t, crowded)
    await occupy(() => provider.send(known.method, known.params))
    await assert.rejects(provider.send(known.method, known.params), raised(crowded))
  })
  test('over the rate', async (t) => {
    const provider = overWSS(t, { key: await indebtedKey('ethers-ws', 100) })
    await assert.rejects(provider.send(known.method, known.params), ({ code, error }) => {
      assert.deepEqual([code, error.code, error.message], ['UNKNOWN_ERROR', limited.code, limited.message])
      assert.equal(error.data.allowed_rps, 1)
      return true
    })
  })
  test('a wrong key', async (t) => {
    const provider = overWSS(t, { key: wrongKey })
    // Without a handler the process ends here, and what was sent waits for ever.
    const err = await new Promise((resolve) => (provider.websocket.onerror = resolve))
    assert.equal(err.message, 'Unexpected server response: 401')
  })
})
