// The lookups that every client makes, over each transport that it has.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeRlp, keccak256, toBeArray } from 'ethers'
import { byHash, byNumber, connections, service } from './service.mjs'

// Clients that use the default agent of https have a connection per request before.
const keepsAlive = Number(process.versions.node.split('.')[0]) >= 19

// lookups holds what ask(method, params) resolves to to what is true.
export function lookups(ask) {
  test('by number', async () => {
    for (const u of service.uncles) check(await ask(byNumber, [u.number, u.index]), u.hash)
  })
  test('by hash', async () => {
    for (const u of service.uncles) check(await ask(byHash, [u.block, u.index]), u.hash)
  })
  test('by tag', async () => {
    assert.ok(service.latest.length > 0)
    for (const [i, hash] of service.latest.entries()) check(await ask(byNumber, ['latest', `0x${i}`]), hash)
    for (const tag of ['latest', 'safe', 'finalized', 'earliest', 'pending']) {
      assert.equal(await ask(byNumber, [tag, '0x2']), null, tag)
    }
  })
  test('null beyond the uncles, without uncles, without the block', async () => {
    for (const n of service.nulls) {
      assert.equal(await ask(byNumber, [n.number, n.index]), null)
      assert.equal(await ask(byHash, [n.block, n.index]), null)
    }
  })
  test('a hundred at a time', async () => {
    const asked = [...service.uncles, ...service.uncles].slice(0, 100)
    const answers = await Promise.all(asked.map((u) => ask(byNumber, [u.number, u.index])))
    assert.deepEqual(answers.map((a) => a.hash), asked.map((u) => u.hash))
  })
  test('one connection for many', async () => {
    const opened = await connections(async () => {
      for (const u of service.uncles) await ask(byHash, [u.block, u.index])
    })
    assert.ok(opened <= 1 || !keepsAlive, `${opened} connections for ${service.uncles.length} lookups`)
  })
}

// check recomputes the hash from the fields that the client gives.
export function check(uncle, hash) {
  assert.equal(uncle.hash, hash)
  const quantity = (hex) => toBeArray(BigInt(hex))
  const header = [
    uncle.parentHash, uncle.sha3Uncles, uncle.miner, uncle.stateRoot, uncle.transactionsRoot, uncle.receiptsRoot,
    uncle.logsBloom, quantity(uncle.difficulty), quantity(uncle.number), quantity(uncle.gasLimit),
    quantity(uncle.gasUsed), quantity(uncle.timestamp), uncle.extraData, uncle.mixHash, uncle.nonce,
    quantity(uncle.baseFeePerGas),
  ]
  assert.equal(keccak256(encodeRlp(header)), hash, 'the hash of the fields')
  assert.deepEqual(uncle.uncles, [])
}
