

if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    failed = len(result.failures) + len(result.errors)
    passed = result.testsRun - failed
    print(f"{passed} passed, {failed} failed")
    print(f"{time.time() - started:.9f} seconds")
    with open("reward.txt", "w") as f:
        f.write(str(passed / max(result.testsRun, 1)))
    sys.exit(not result.wasSuccessful())
