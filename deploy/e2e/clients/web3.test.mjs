// web3.js 4, the one with a method for uncles.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { FMT_BYTES, FMT_NUMBER, Web3, WebSocketProvider } from 'web3'
import { InvalidResponseError, ResponseError } from 'web3-errors'
import { lookups } from './lookups.mjs'
import {
  byNumber, crowded, https, indebtedKey, known, limited, occupy, refusals, requests, service, wrongKey, wss,
} from './service.mjs'

const hex = { number: FMT_NUMBER.HEX, bytes: FMT_BYTES.HEX }

// getUncle asks by the method of its own. It takes the nonce for a number.
const getUncle = (web3) => async (_, [block, index]) => {
  const uncle = await web3.eth.getUncle(block, index, hex)
  return uncle && { ...uncle, nonce: `0x${uncle.nonce.slice(2).padStart(16, '0')}` }
}

// raised: every JSON-RPC error is one class, the error itself its cause.
const raised = ({ code, message }) => (err) => {
  assert.ok(err instanceof InvalidResponseError, err.name)
  assert.equal(err.message, `Returned error: ${message}`)
  assert.deepEqual(err.cause, { code, message })
  return true
}

describe('web3 over HTTPS', () => {
  const web3 = new Web3(https())

  lookups(getUncle(web3))

  for (const refusal of refusals) {
    test(refusal.name, async () => {
      const web3 = new Web3(https(refusal))
      await assert.rejects(web3.requestManager.send({ method: refusal.method, params: refusal.params }), raised(refusal))
    })
  }
  test('a batch', async () => {
    const sent = await requests(async () => {
      const batch = new web3.BatchRequest()
      for (const [id, u] of service.uncles.entries()) {
        void batch.add({ jsonrpc: '2.0', id, method: byNumber, params: [u.number, u.index] })
      }
      const answers = await batch.execute()
      assert.deepEqual(answers.map((a) => a.result.hash), service.uncles.map((u) => u.hash))
    })
    assert.equal(sent, 1)
  })
  test('a wrong key', async () => {
    const web3 = new Web3(https({ key: wrongKey }))
    const sent = await requests(() =>
      assert.rejects(web3.eth.getUncle(...known.params), (err) => {
        assert.ok(err instanceof ResponseError, err.name)
        assert.equal(err.statusCode, 401)
        assert.deepEqual(err.cause, { code: -32002, message: 'invalid API key' })
        return true
      }),
    )
    assert.equal(sent, 1, 'it is not tried again')
  })
  test('over the rate', async () => {
    const web3 = new Web3(https({ key: await indebtedKey('web3', 100) }))
    const sent = await requests(() =>
      assert.rejects(web3.eth.getUncle(...known.params), (err) => {
        assert.ok(err instanceof ResponseError, err.name)
        assert.equal(err.statusCode, 429)
        assert.deepEqual([err.cause.code, err.cause.message], [limited.code, limited.message])
        assert.equal(err.data.allowed_rps, 1)
        return true
      }),
    )
    assert.equal(sent, 1, 'it is not tried again')
  })
})

describe('web3 over WSS', () => {
  const open = (where) => new Web3(new WebSocketProvider(wss(where), {}, { autoReconnect: false }))
  // Connections end with their test, also when it fails: they would keep the process.
  const openFor = (t, where) => {
    const web3 = open(where)
    t.after(() => web3.provider.disconnect())
    return web3
  }
  const web3 = open()
  after(() => web3.provider.disconnect())

  lookups(getUncle(web3))

  for (const refusal of refusals) {
    test(refusal.name, async (t) => {
      const web3 = openFor(t, refusal)
      await assert.rejects(web3.requestManager.send({ method: refusal.method, params: refusal.params }), raised(refusal))
    })
  }
  test('too many in flight', async (t) => {
    const web3 = openFor(t, crowded)
    await occupy(() => web3.eth.getUncle(...known.params).catch(() => {})) // until the connection ends
    await assert.rejects(web3.requestManager.send(known), raised(crowded))
  })
  test('over the rate', async (t) => {
    const web3 = openFor(t, { key: await indebtedKey('web3-ws', 100) })
    await assert.rejects(web3.eth.getUncle(...known.params), (err) => {
      assert.ok(err instanceof InvalidResponseError, err.name)
      assert.deepEqual([err.cause.code, err.cause.message], [limited.code, limited.message])
      assert.equal(err.data.allowed_rps, 1)
      return true
    })
  })
  test('a wrong key', async () => {
    const provider = new WebSocketProvider(wss({ key: wrongKey }), {}, { autoReconnect: false })
    const err = await new Promise((resolve) => provider.on('error', resolve))
    assert.equal(err.message, 'Unexpected server response: 401')
  })
})
